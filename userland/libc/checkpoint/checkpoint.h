/* Starting where an earlier start was stored.
 *
 * A program that takes long to prepare itself does so once, when the image is made:
 *
 *	int main(int argc, char **argv)
 *	{
 *		if (checkpoint_wanted()) {
 *			prepare();
 *			checkpoint();
 *		}
 *		... an ordinary start ...
 *	}
 *
 *	int resumed_main(int argc, char **argv, char **envp)
 *	{
 *		... as main, but everything is prepared ...
 *	}
 *
 * checkpoint() does not return: the memory becomes the program's data, and from then on every
 * start enters at resumed_main, on an empty stack. Nothing of the kernel's is kept, so at the
 * checkpoint there must be no open files but 0, 1 and 2, no signal actions, no children, and
 * nothing may have been written. What the preparation learned from its environment (arguments,
 * variables, time, process ids, random numbers, the time zone) has to be learned again. */
#ifndef CHECKPOINT_H
#define CHECKPOINT_H

/* Is this the start that will be stored? */
int checkpoint_wanted(void);

/* Ends the start that will be stored. */
_Noreturn void checkpoint(void);

/* Defined by the program. */
int resumed_main(int argc, char **argv, char **envp);

/* Waits until a descriptor can be read, or is at its end; -1 if a signal came first. A program that
 * waits here may be copied with all it has, and the copy enters at *rested_main, on an empty stack,
 * with the same descriptors, signal actions and process id. */
int checkpoint_rest(int descriptor);

/* Where copies of this process enter; 0 if it was not prepared for that. */
extern int (*rested_main)(void);

#endif
