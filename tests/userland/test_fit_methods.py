"""Functions that Python calls get the parameters that Python passes."""

from __future__ import annotations

from pathlib import Path

import pytest

from userland.builder.fit_methods import fitted, main

SOURCE = """
static PyObject *Box_size(Box *self);
static PyObject*
Box_size( Box* self )
{
    return 0;
}
static PyObject *Box_open(Box *self, PyObject *args) { return Box_size(self); }
static PyObject *Box_name(const struct Box *self) { return 0; }
static PyObject *Box_free(Box *self) { return 0; }
static PyObject *Box_list(Box *self) { return 0; }
static PyMethodDef methods[] = {
    {"list", (PyCFunction)Box_list, METH_VARARGS},
    {"call", (PyCFunction)Box_free, METH_VARARGS | METH_KEYWORDS, ""},
    {"size", (PyCFunction)Box_size, METH_NOARGS, ""},
    {"open", ( PyCFunction )Box_open, METH_VARARGS, ""},
    {"elsewhere", (PyCFunction)Box_elsewhere, METH_NOARGS, ""},
};
static int Box_rename(Box *self, PyObject *value) { return 0; }
static int Box_resize(Box *self, PyObject *value, void *closure) { return 0; }
static PyGetSetDef getters[] = {
    {"name", (getter)Box_name, (setter)Box_rename, 0, 0},
    {"width", (getter)0, (setter)Box_resize, 0, 0},
};
"""


def test_methods_getters_and_setters_get_their_last_parameter() -> None:
    text, changed = fitted(SOURCE)
    assert changed == ["Box_list", "Box_name", "Box_rename", "Box_size"]
    assert "*Box_size(Box *self, PyObject *Py_UNUSED(left_out));" in text
    assert "\nBox_size( Box* self, PyObject *Py_UNUSED(left_out) )\n{" in text
    assert "Box_rename(Box *self, PyObject *value, PyObject *Py_UNUSED(left_out)) {" in text
    assert "Box_name(const struct Box *self, PyObject *Py_UNUSED(left_out)) {" in text


def test_other_functions_and_calls_stay_as_they_are() -> None:
    text, _ = fitted(SOURCE)
    assert "Box_open(Box *self, PyObject *args) { return Box_size(self); }" in text
    assert "Box_free(Box *self) {" in text
    assert fitted(text) == (text, [])


def test_it_is_an_error_if_no_function_lacks_a_parameter(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "module.c"
    file.write_text(SOURCE)
    assert main([str(file)]) == 0
    assert file.read_text() == fitted(SOURCE)[0]
    assert main([str(file)]) == 1
    assert "no function lacks a parameter" in capsys.readouterr().err
