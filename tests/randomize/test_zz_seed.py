def test_a(rng):
    import pathlib; pathlib.Path("/tmp/plug/out").open("a").write(repr(rng)+"\n")
