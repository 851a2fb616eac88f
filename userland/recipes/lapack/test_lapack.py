"""LAPACK: how its Fortran becomes C. Its routines are tested through numpy and scipy."""

from __future__ import annotations

import pytest

from userland.recipes.lapack import c_interface, fortran77


def fortran(*lines: str, routine: str = "dtest") -> list[str]:
    """The statements that these lines in fixed form become."""
    text = "\n".join(f"      {line}" for line in lines)
    return [line.strip() for line in fortran77.rewritten(text, routine, False).splitlines()]


def test_exit_and_cycle_become_jumps_to_the_end_of_their_loop() -> None:
    lines = ("DO I = 1, N", "IF( A( I ) ) CYCLE", "DO WHILE( B )", "EXIT", "END DO", "END DO")
    assert fortran(*lines) == [
        "DO I = 1, N",
        "IF( A( I ) ) GO TO 90001",
        "DO WHILE( B )",
        "GO TO 90002",
        "END DO",
        "90002 CONTINUE",
        "90001 CONTINUE",
        "END DO",
    ]


def test_a_loop_with_a_label_is_left_and_continued() -> None:
    text = "      DO 10 I = 1, N\n      IF( A ) EXIT\n      IF( B ) CYCLE\n"
    text += "   10 CONTINUE\n      RETURN\n"
    lines = [line.strip() for line in fortran77.rewritten(text, "dtest", False).splitlines()]
    assert lines == [
        "DO 10 I = 1, N",
        "IF( A ) GO TO 90001",
        "IF( B ) GO TO 10",
        "10    CONTINUE",
        "90001 CONTINUE",
        "RETURN",
    ]


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("RECURSIVE SUBROUTINE DTEST( N )", ["SUBROUTINE DTEST( N )"]),
        ("INTEGER, INTENT( IN ) :: N, LDA", ["INTEGER N, LDA"]),
        ("LOGICAL, EXTERNAL :: LSAME", ["LOGICAL LSAME", "EXTERNAL LSAME"]),
        ("INTEGER, PARAMETER :: N = 2", ["INTEGER N", "PARAMETER ( N = 2 )"]),
        ("IWORK(1:3) = 0", ["IWORK( 1 ) = 0", "IWORK( 2 ) = 0", "IWORK( 3 ) = 0"]),
        ("P = MAXLOC( W( (N+J):(2*N) ), 1 )", ["P = IDMXLC( (2*N)-(N+J)+1, W( (N+J) ) )"]),
        ("X = AIMAG( Z )", ["X = DIMAG( Z )"]),
        ("NAME( 1:1 ) = 'A!B'", ["NAME( 1:1 ) = 'A!B'"]),
    ],
)
def test_statements_of_fortran_90_are_replaced(statement: str, expected: list[str]) -> None:
    assert fortran(statement) == expected


def test_constants_of_the_module_are_declared_in_the_routine() -> None:
    source = "subroutine SLARTG( f )\n   use LA_CONSTANTS, &\n   only: wp=>sp, safmin=>ssafmin\n"
    source += "   real(wp) :: f\n   if( f == safmin ) f = 0\nend subroutine\n"
    lines = [line.strip() for line in fortran77.from_free_form(source, "slartg").splitlines()]
    assert lines == [
        "SUBROUTINE SLARTG( F )",
        "REAL SAFMIN",
        "PARAMETER ( SAFMIN = 1.17549435082228751E-38 )",
        "REAL F",
        "IF( F .EQ. SAFMIN ) F = 0",
        "END",
    ]


def test_subroutines_return_nothing_and_lengths_of_strings_are_dropped() -> None:
    code = (
        "/* Subroutine */ int dgetrs_(char *trans, integer *n, ftnlen trans_len)\n"
        "{\n    extern logical lsame_(char *, char *, ftnlen, ftnlen);\n"
        '    if (lsame_(trans, "N(", (ftnlen)1, (\n\tftnlen)2)) f_(&a[b_(i)], (ftnlen)1);\n'
        "    return 0;\n}\n"
    )
    assert c_interface.rewritten(code) == (
        "void dgetrs_(char *trans, integer *n)\n"
        "{\n    extern logical lsame_(char *, char *);\n"
        '    if (lsame_(trans, "N(")) f_(&a[b_(i)]);\n'
        "    return;\n}\n"
    )


def test_functions_that_need_lengths_keep_them() -> None:
    code = (
        "extern void xerbla_(char *, integer *, ftnlen);\n"
        's_cat(a, b, i, &c__2, (ftnlen)2); n = ilaenv_(&c__1, "D", " ", (ftnlen)1, (ftnlen)1);\n'
    )
    assert c_interface.rewritten(code) == code


def test_constants_of_the_module_are_declared_with_or_without_a_local_name() -> None:
    text = """subroutine ctest( g )
   use LA_CONSTANTS, &
   only: wp=>sp, one=>sone, czero, &
         safmin=>ssafmin
   complex(wp) g
   g = czero
end subroutine
"""
    lines = fortran77.from_free_form(text, "ctest").splitlines()
    assert [line.strip() for line in lines if line.strip()] == [
        "SUBROUTINE CTEST( G )",
        "REAL ONE",
        "PARAMETER ( ONE = 1.00000000000000000E+00 )",
        "COMPLEX CZERO",
        "PARAMETER ( CZERO = (0.0,0.0) )",
        "REAL SAFMIN",
        "PARAMETER ( SAFMIN = 1.17549435082228751E-38 )",
        "COMPLEX G",
        "G = CZERO",
        "END",
    ]
