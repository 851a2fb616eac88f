"""sudo and su: the sandbox's own root, and no more."""

from __future__ import annotations

import pytest

from userland.recipes.script_tables import prints
from wasmsand import Sandbox

test_identities = prints(
    ("sudo id", "uid=0(root) gid=0(root) groups=0(root)\n"),
    ("sudo -u nobody id -un", "nobody\n"),
    ("sudo -u '#1000' id -un", "user\n"),
    ("sudo -g tty id -gn", "tty\n"),
    ("sudo sudo -u user sudo id -u", "0\n"),
    ("sudo su -c 'id -u'", "0\n"),
    ("sudo su - user -c 'id -un; pwd'", "user\n/home/user\n"),
    ("sudo su nobody -s /bin/sh -c 'id -un'", "nobody\n"),
)

test_the_environment_is_clean = prints(
    ("A=1 sudo sh -c 'echo ${A-none} $HOME $USER'", "none /root root\n"),
    ("sudo sh -c 'echo $SUDO_USER $SUDO_UID $SUDO_GID'", "user 1000 1000\n"),
    ("A=1 sudo -E sh -c 'echo $A $HOME'", "1 /home/user\n"),
    ("A=1 B=2 sudo --preserve-env=B,C sh -c 'echo ${A-none} $B'", "none 2\n"),
    ("sudo A=1 B='2 3' sh -c 'echo $A $B'", "1 2 3\n"),
    ("SSL_CERT_FILE=/x sudo printenv SSL_CERT_FILE", "/x\n"),
    ("sudo printenv SUDO_COMMAND", "printenv SUDO_COMMAND\n"),
)

test_shells = prints(
    ("sudo -i pwd", "/root\n"),
    ("sudo -i printf '%s|' 'a b' '$(id)'", "a b|$(id)|"),
    ("echo 'id -un; echo $0' | sudo -i", "root\n-bash\n"),
    ("echo 'id -un' | sudo -s", "root\n"),
)  # fmt: skip

test_what_root_may_change = prints(
    ("echo hi | sudo tee /etc/motd; stat -c %U /etc/motd", "hi\nroot\n"),
    ("sudo install -d -o user /srv/mine && touch /srv/mine/x && echo made", "made\n"),
    ("sudo hostname other && hostname", "other\n"),
    ("sudo -n true; sudo -v; sudo -k; echo $?", "0\n"),
)


@pytest.mark.parametrize(
    ("script", "exit_code", "stderr"),
    [
        ("sudo no-such-program", 1, "sudo: no-such-program: command not found\n"),
        ("sudo /etc/passwd", 1, "sudo: unable to execute /etc/passwd: Permission denied\n"),
        ("sudo -u nobody-knows id", 1, "sudo: unknown user nobody-knows\n"),
        ("sudo -g no-group id", 1, "sudo: unknown group no-group\n"),
        ("sudo sh -c 'exit 7'", 7, ""),
        ("sudo -u nobody sudo id", 1, "nobody is not in the sudoers file.\n"),
        (
            "su -c id",
            1,
            "su: Authentication failure\n"
            "hint: there are no passwords: use `sudo COMMAND`, or `sudo su`\n",
        ),
    ],
)
def test_failures(sandbox: Sandbox, script: str, exit_code: int, stderr: str) -> None:
    result = sandbox.commands.run(script)
    assert (result.exit_code, result.stdout, result.stderr) == (exit_code, "", stderr)


def test_an_absent_program_has_the_shells_hint(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("sudo apt-get install -y curl")
    assert result.exit_code == 1
    assert result.stderr.startswith("sudo: apt-get: command not found\nhint: ")
    assert "pip install" in result.stderr


def test_without_a_command_it_says_how_to_use_it(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("sudo")
    assert result.exit_code == 1
    assert result.stderr.startswith("usage: sudo ")


def test_a_copy_has_no_rights(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("cp /usr/bin/sudo s && chmod 4755 s && ./s id")
    assert (result.exit_code, result.stderr) == (1, "sudo: root: Operation not permitted\n")


def test_a_path_with_an_equals_sign_is_a_command(sandbox: Sandbox) -> None:
    script = "mkdir a=b && printf '#!/bin/sh\\necho ran\\n' > a=b/c && chmod +x a=b/c"
    assert sandbox.commands.run(f"{script} && sudo ./a=b/c").stdout == "ran\n"


def test_packages_can_be_installed_as_root(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("sudo pip install -q six && python3 -c 'import six; print(1)'")
    assert result.stdout == "1\n"


def test_git_commits_without_further_configuration(sandbox: Sandbox) -> None:
    result = sandbox.commands.run(
        "git init r && cd r && echo a > a && git add a && git commit -qm first && "
        "git log --format='%an <%ae> %s' && git branch --show-current"
    )
    assert result.stderr == ""
    assert result.stdout == (
        "Initialized empty Git repository in /home/user/r/.git/\n"
        "user <user@sandbox.invalid> first\nmain\n"
    )


def test_git_configuration_of_the_user_comes_first(sandbox: Sandbox) -> None:
    script = "git config --global user.name Ann; git config user.name; git config user.email"
    assert sandbox.commands.run(script).stdout == "Ann\nuser@sandbox.invalid\n"


def test_root_uses_a_repository_of_the_user(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("git init -q r && cd r && sudo git status --short && echo ok")
    assert (result.stdout, result.stderr) == ("ok\n", "")
