#| packages: numpy
#| xfail: L095 extension modules have no files
import numpy._core._multiarray_umath as module

print(hasattr(module, "__file__"))
