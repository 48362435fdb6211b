"""Games in Debian with English voice acting. Each module has `lines(root) -> [(load, text,
speaker)]`. `root` is the folder in which the package is unpacked (/ when it is installed),
`load()` gives (int16 wave, rate in Hz), `text` is the spoken text, and `speaker` the name of the
role, or None where the files of the game do not tell it.
"""
