# The exception tag of longjmp: its value is the address of {env, value}.

	.tagtype	__c_longjmp i32
	.globl	__c_longjmp
__c_longjmp:
