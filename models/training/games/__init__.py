"""
Games of Debian in which actors speak English, each with `lines(root) -> [(load, text, speaker)]`: `root` is the folder its package is unpacked in (/ when it is installed),
`load()` gives (int16 wave, rate in Hz), `text` is what is said, `speaker` the name of the role, or None where the game's files do not tell.
"""
