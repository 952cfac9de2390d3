import mbdnode


def test_version_is_that_of_the_package(run):
    assert run("--version").out.strip() == f"mbdnode {mbdnode.__version__}"


def test_help_names_every_command(run):
    result = run("--help")
    assert result.code == 0
    assert all(
        command in result.out for command in ("cases", "simulate", "run", "reproduce", "gallery")
    )


def test_without_arguments_the_help_is_shown(run):
    assert "Usage: mbdnode" in "".join(run()[1:])


def test_unknown_command_is_refused(run):
    result = run("simulat")
    assert result.code == 2
    assert "simulat" in result.err
    assert "Traceback" not in result.err
