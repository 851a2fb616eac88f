
/* Appended to Python/initconfig.c: the configuration of a start from the checkpoint. */
#include "pycore_prepared.h"

int _PyPrepared_CanFollow(const PyWideStringList *arguments)
{
	int option, index = -1, complain = _PyOS_opterr;
	_PyOS_ResetGetOpt();
	_PyOS_opterr = 0;
	do {
		option = _PyOS_GetOpt(arguments->length, arguments->items, &index);
	} while (option > ' ' && option < 127 && strchr("BuqihV", option));
	_PyOS_opterr = complain;
	return option == EOF || option == 'c' || option == 'm';
}

PyStatus _PyPrepared_ReadConfig(PyConfig *config)
{
	PyWideStringList warnings = _PyWideStringList_INIT;
	Py_ssize_t index;
	PyStatus status = config_parse_cmdline(config, &warnings, &index);
	if (_PyStatus_EXCEPTION(status)) return status;
	status = config_run_filename_abspath(config);
	if (_PyStatus_EXCEPTION(status)) return status;
	status = config_update_argv(config, index);
	if (_PyStatus_EXCEPTION(status)) return status;
	status = config_read_env_vars(config);
	if (_PyStatus_EXCEPTION(status)) return status;

	PyMem_RawFree(config->stdio_encoding);
	PyMem_RawFree(config->stdio_errors);
	config->stdio_encoding = config->stdio_errors = NULL;
	status = config_init_stdio_encoding(config, &_PyRuntime.preconfig);
	if (_PyStatus_EXCEPTION(status)) return status;
	config_init_stdio(config);
	return _PyStatus_OK();
}
