#!/bin/sh
# Tells scipy's build where the libraries and generators of other recipes are.
#
#   prepare.sh      in the source tree, with RECIPE and LDFLAGS in the environment
#
# Adds to what lapack/describe.sh writes: scipy.ini, a third cross file; numpy.pc; f2py; meson.py; and
# numpy/, a directory with numpy's headers and f2py's sources side by side, as in an installed numpy.
set -eu

. "$RECIPE/../lapack/describe.sh"

mkdir -p "$tools/numpy/_core/include"
numpy=$(holding include/numpy/arrayobject.h)
f2py=$(holding lib/f2py)
python=$(holding bin/python3)

ln -s "$numpy/include/numpy" "$tools/numpy/_core/include/numpy"
ln -s "$f2py/lib/f2py/numpy/f2py" "$tools/numpy/f2py"
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$f2py/lib/f2py/numpy/version.py")
description numpy "$version" "-I$numpy/include" ""

# Not from the directory it is called in: scipy has a directory called signal.
cat > "$tools/f2py" <<END
#!/bin/sh
PYTHONPATH=$f2py/lib/f2py exec $python/bin/python3 -P -m numpy.f2py "\$@"
END
chmod +x "$tools/f2py"

cat > "$tools/scipy.ini" <<END
[binaries]
f2py = '$tools/f2py'

[properties]
numpy-include-dir = '../wasmsand-tools/numpy/_core/include'
END
# Some modules have hundreds of objects. Meson would name them in a file, which our compiler driver
# does not read.
cat > "$tools/meson.py" <<END
import os, sys

os.environ["MESON_RSP_THRESHOLD"] = "1000000"
from mesonbuild.mesonmain import main

sys.exit(main())
END
# Its generator of modules runs f2py by its name.
sed -i "s|cmd = \['f2py'|cmd = ['$tools/f2py'|" tools/generate_f2pymod.py
grep -q wasmsand-tools tools/generate_f2pymod.py
# What only its tests use, which are not installed.
find scipy -name meson.build -exec sed -i -z \
	"s/install: true,\(\n\([^)]\|()\)*install_tag: 'tests'\)/install: false, build_by_default: false,\1/g" {} +
# Subroutines of LAPACK return nothing, and get no lengths of strings.
sed -i '/^CBLAS_INT *$/{N;s/^CBLAS_INT *\(\nBLAS_FUNC\)/void\1/}' scipy/linalg/src/_common_array_utils.hh
sed -i -e '/BLAS_FUNC(dlagtm)/s/ldb, int)/ldb)/' -e '/BLAS_FUNC(dlagtm)/s/&ldb_, 1)/\&ldb_)/' \
	scipy/optimize/_trlib/trlib_private.h
sed -i -e '/_in_gees__user__routines,/s/,&info,1,1)$/,\&info)/' -e '/callprotoargument/s/,F_INT,F_INT$//' \
	scipy/linalg/flapack_gen.pyf.src
# A getter has two parameters, and so has a method without arguments; a call that passes more than a
# function has traps (see userland/builder/fit_methods.py, which does not know methods of classes).
sed -i -E -e 's/(get_(extractor|replacer|default|domain)\(Function \* self)\)/\1, void *)/' \
	-e 's/pickle_\(BackendState \* self\)/pickle_(BackendState * self, PyObject *)/' \
	scipy/_lib/_uarray/_uarray_dispatch.cxx
# HiGHS would be compiled twice: scipy makes a library of its own of the same sources.
sed -i "/^highslib = library('highs',/,/pic: true,/s/pic: true,/& build_by_default: false,/" \
	subprojects/highs/highs/meson.build
grep -q build_by_default subprojects/highs/highs/meson.build
# Rarely used, and large: for each kind of number there is a copy of all functions.
sed -i "s/^  install: true,/& override_options: ['optimization=s'],/" scipy/io/_fast_matrix_market/meson.build
grep -q override_options scipy/io/_fast_matrix_market/meson.build
