"""Section texts that real releases accept or refuse: name -> (text, releases that load it).

`ID` stands for the two required fields.  What was found by running Nsight Compute 2020.3, 2022.3, 2024.1 and 2024.2 on each.
"""

from __future__ import annotations

EVERY = ("2020.3", "2022.3", "2024.1", "2024.2")
FROM_2022 = EVERY[1:]
FROM_2024 = EVERY[2:]
LATEST = EVERY[3:]
NONE: tuple[str, ...] = ()

_ID = 'Identifier: "{name}" DisplayName: "{name}"\n'
_CHART = _ID + 'Body {{ Items {{ RooflineChart {{ Label: "l" {chart} }} }} }}'
_ROOF = _CHART.replace("{chart}", "Rooflines {{ PeakWork {{ {work} }} PeakTraffic {{ Constant: 1 }} }}")


def _chart(chart: str) -> str:
    return _CHART.replace("{chart}", chart.replace("{", "{{").replace("}", "}}"))


def _roof(work: str) -> str:
    return _ROOF.replace("{work}", work.replace("{", "{{").replace("}", "}}"))


def _with(text: str) -> str:
    return _ID + text.replace("{", "{{").replace("}", "}}")


def _metric(text: str) -> str:
    return _with("Metrics { Metrics { " + text + " } }")


PROBES: dict[str, tuple[str | bytes, tuple[str, ...]]] = {
    # accepted everywhere
    "plain": (_ID, EVERY),
    "comments": ("# one\n" + _ID + "Order: 3 # two\n#end", EVERY),
    "colonbrace": (_with('Metrics: { Metrics: { Name: "m" } }'), EVERY),
    "angle": (_with('Metrics < Metrics < Name: "m" > >'), EVERY),
    "commas": ('Identifier: "{name}", DisplayName: "{name}"; Order: 1,', EVERY),
    "listsets": (_with('Sets: [ { Identifier: "a" }, { Identifier: "b" } ]'), EVERY),
    "listnocolon": (_with('Sets [ { Identifier: "a" } ]'), EVERY),
    "emptylist": (_with("Sets: []"), EVERY),
    "quotes": ("Identifier: '{name}' DisplayName: '{name}'", EVERY),
    "concat": (_with('Description: "a" "b" \'c\''), EVERY),
    "escapes": (_with(r'Description: "a\n\t\\\"\101\x41"'), EVERY),
    "utf8": (_with('Description: "größer μ"'), EVERY),
    "crlf": (_ID.replace(" ", "\r\n"), EVERY),
    "oneline": (_with('Order: 1 Sets { Identifier: "a" } Sets { Identifier: "b" }'), EVERY),
    "exponent": (_roof("Constant: 1.5E+12"), EVERY),
    "floatf": (_roof("Constant: 1.5e12f"), EVERY),
    "huge": (_roof("Constant: 123456789012345678901234567890"), EVERY),
    "inf": (_roof("Constant: inf"), EVERY),
    "infinity": (_roof("Constant: -Infinity"), EVERY),
    "nan": (_roof("Constant: nan"), EVERY),
    "negative": (_roof("Constant: -1"), EVERY),
    "minusspace": (_roof("Constant: - 1"), EVERY),
    "pointfirst": (_roof("Constant: .5"), EVERY),
    "pointlast": (_roof("Constant: 5."), EVERY),
    "hexconst": (_roof("Constant: 0x10"), NONE),
    "octalconst": (_roof("Constant: 010"), NONE),
    "boolword": (_metric('Name: "m" ShowInstances: true'), EVERY),
    "boolbig": (_metric('Name: "m" ShowInstances: True'), EVERY),
    "boolt": (_metric('Name: "m" ShowInstances: t'), EVERY),
    "booln": (_metric('Name: "m" ShowInstances: 1'), EVERY),
    "boolhex": (_metric('Name: "m" ShowInstances: 0x1'), EVERY),
    "bool2": (_metric('Name: "m" ShowInstances: 2'), NONE),
    "boolyes": (_metric('Name: "m" ShowInstances: yes'), NONE),
    "enumnumber": (_metric('Name: "m" Filter { MinArch: 80 }'), EVERY),
    "enumhex": (_metric('Name: "m" Filter { MinArch: 0x50 }'), EVERY),
    "enumoctal": (_metric('Name: "m" Filter { MinArch: 0120 }'), EVERY),
    "minarch": (_metric('Name: "m" Filter { MinArch: MinArch MaxArch: MaxArch }'), EVERY),
    "walls": (_chart('Walls { Value { Constant: 1 } Options { Label: "w" } }'), EVERY),
    "color": (
        _chart("Walls { Value { Constant: 1 } Options { Color { ColorType: ChartColorTypeArgb ColorValue: 0xFFFF0000 } } }"),
        EVERY,
    ),
    "colordec": (_chart("Walls { Value { Constant: 1 } Options { Color { ColorType: 1 ColorValue: 4294901760 } } }"), EVERY),
    "emptymessage": (_with("Metrics { }"), EVERY),
    "emptyvalue": (_roof(""), EVERY),
    "definition": (_with('MetricDefinitions { MetricDefinitions { Name: "derived__x" Expression: "nonsense" } }'), EVERY),
    # not everywhere
    "cc90": (_metric('Name: "m" Filter { MinArch: CC_90 }'), FROM_2022),
    "cc70": (_metric('Name: "m" Filter { MinArch: CC_70 }'), FROM_2022),
    "gv100": (_metric('Name: "m" Filter { MinArch: GV100 }'), EVERY[:1]),
    "number90": (_metric('Name: "m" Filter { MinArch: 90 }'), FROM_2022),
    "number43": (_metric('Name: "m" Filter { MinArch: 43 }'), EVERY[:2]),
    "number50": (_metric('Name: "m" Filter { MinArch: 50 }'), EVERY),
    "cc120": (_metric('Name: "m" Filter { MinArch: CC_120 }'), NONE),
    "items": (_metric('Name: "m" Filter { Items { MinArch: 70 MaxArch: 75 } }'), FROM_2022),
    "filter": (_with("Filter { MinArch: 70 }"), FROM_2022),
    "groups": (_metric('Name: "m" Groups: "g"'), FROM_2022),
    "groupslist": (_metric('Name: "m" Groups: ["g", "h"]'), FROM_2022),
    "chartdescription": (_chart('Description: "d"'), FROM_2022),
    "definitionfilter": (
        _with('MetricDefinitions { MetricDefinitions { Name: "a" Expression: "b" Filter { MinArch: 70 } } }'),
        FROM_2024,
    ),
    "importance": (_with("Filter { CollectionFilter { Importance: CollectionImportance_Required } }"), FROM_2024),
    "setdefault": (_with("Body { SetDefault: true }"), FROM_2024),
    "suffixtable": (_with("Body { Items { SuffixTable { Suffixes { } BaseNames { } } } }"), FROM_2024),
    "ifnotzero": (_chart("Rooflines { PeakWork { } PeakTraffic { } Options { ShowOnlyIfNotZero { Constant: 1 } } }"), LATEST),
    "metricdescription": (_metric('Name: "m" Description { Text: "t" }'), LATEST),
    "ranges": (_with("Body { Items { Timeline { MetricGroups { MetricRows { Type: Ranges } } } } }"), LATEST),
    # refused everywhere
    "bom": (b"\xef\xbb\xbf" + b'Identifier: "bom" DisplayName: "{name}"', NONE),
    "latin1": (b'Identifier: "latin1" DisplayName: "d\xe9"', EVERY),
    "badutf8escape": (_with(r'Description: "\xe9"'), EVERY),
    "empty": ("", NONE),
    "onlycomment": ("# nothing\n", NONE),
    "unknownfield": (_with("Foo: 1"), NONE),
    "lowercase": ('identifier: "{name}" DisplayName: "{name}"', NONE),
    "twice": (_with("Order: 1 Order: 2"), NONE),
    "messagetwice": (_with('Metrics { Metrics { Name: "a" } } Metrics { Metrics { Name: "b" } }'), NONE),
    "oneof": (_roof('Constant: 1 Metric { Name: "m" }'), NONE),
    "enumname": (_metric('Name: "m" Filter { MinArch: CC_71 }'), NONE),
    "enumunknown": (_metric('Name: "m" Filter { MinArch: 71 }'), NONE),
    "enumstring": (_metric('Name: "m" Filter { MinArch: "CC_70" }'), NONE),
    "noidentifier": ('DisplayName: "{name}"', NONE),
    "nodisplay": ('Identifier: "{name}"', NONE),
    "nometricname": (_metric('Label: "l"'), NONE),
    "nocolumns": (_with("Body { Items { Table { Rows: 1 } } }"), NONE),
    "nocolortype": (_chart("Walls { Value { } Options { Color { ColorValue: 1 } } }"), NONE),
    "notraffic": (_chart("Rooflines { PeakWork { Constant: 1 } }"), NONE),
    "noachieved": (_chart("AchievedValues { AchievedWork { Constant: 1 } }"), NONE),
    "nowallvalue": (_chart("Walls { }"), NONE),
    "noexpression": (_with('MetricDefinitions { MetricDefinitions { Name: "derived__x" } }'), NONE),
    "docimportance": (_with("Filter { CollectionFilter { Importance: Required } }"), NONE),
    "docdescription": (_metric('Name: "m" Description: "text"'), NONE),
    "unclosed": (_with("Metrics { "), NONE),
    "extraclose": (_with("}"), NONE),
    "wrongclose": (_with('Metrics { Metrics { Name: "m" > }'), NONE),
    "nocolon": (_with("Order 1"), NONE),
    "novalue": (_with("Order:"), NONE),
    "textnumber": (_with('Order: "1"'), NONE),
    "negativeuint": (_with("Order: -1"), NONE),
    "uintbig": (_with("Order: 4294967296"), NONE),
    "uintfloat": (_with("Order: 1.0"), NONE),
    "newlinetext": (_with('Description: "a\nb"'), NONE),
    "badescape": (_with(r'Description: "\q"'), NONE),
    "shorthex": (_with(r'Description: "\x"'), NONE),
    "unicodeescape": (_with(r'Description: "\u00e9\U0001F600"'), EVERY),
    "doublesemicolon": (_with("Order: 1;;"), NONE),
    "leadingcomma": (", " + _ID, NONE),
    "listdouble": (_with('Sets: [ { Identifier: "a" },, { Identifier: "b" } ]'), NONE),
    "listtrailing": (_with('Sets: [ { Identifier: "a" }, ]'), NONE),
    "listsingular": (_with("Order: [1]"), NONE),
    "slashcomment": ("// c\n" + _ID, NONE),
    "gluednumber": (_with("Order: 1Extends: 'a'"), NONE),
    "gluedtext": (_with('Description:"a"Extends:"b"'), EVERY),
    "constanttext": (_roof('Constant: "1"'), NONE),
    "bracename": (_with("{ Order: 1 }"), NONE),
    "nonascii": (_ID.replace(" ", "\u00a0"), NONE),
    "formfeed": (_ID.replace(" ", "\f\v"), EVERY),
    "nul": (_ID + "\0", NONE),
    "questionescape": (_with(r'Description: "a\?b"'), EVERY),
    "bigX": (_with(r'Description: "\X41"'), NONE),
    "bigunicode": (_with(r'Description: "\U00110000"'), EVERY),
    "octal400": (_with(r'Description: "\400"'), EVERY),
    "uintoctal": (_with("Order: 010"), EVERY),
    "uinthex": (_with("Order: 0X1f"), EVERY),
    "octalbad": (_with("Order: 08"), NONE),
    "octalfloat": (_roof("Constant: 010.5"), NONE),
    "zeroexponent": (_roof("Constant: 0e5"), EVERY),
    "infupper": (_roof("Constant: INF"), EVERY),
    "zerof": (_roof("Constant: 0f"), EVERY),
    "zerofloat": (_roof("Constant: 0.5"), EVERY),
    "minuszero": (_with("Order: -0"), NONE),
    "valuecomment": (_roof("Constant: # c\n 1"), EVERY),
    "minuscomment": (_roof("Constant: - # c\n 1"), EVERY),
    "minusname": (_roof("Constant: -nan"), EVERY),
    "minusbool": (_metric('Name: "m" ShowInstances: -1'), NONE),
    "enumminusspace": (_metric('Name: "m" Filter { MinArch: - 80 }'), NONE),
    "colonspace": (_with("Order : 1"), EVERY),
    "twocolons": (_with("Order:: 1"), NONE),
    "listsemicolon": (_with('Sets: [ { Identifier: "a" }; { Identifier: "b" } ]'), NONE),
    "scalarnocolonlist": (_metric('Name: "m" Groups ["g"]'), NONE),
    "listmixed": (_metric('Name: "m" Groups: "f" Groups: ["g", "h"]'), FROM_2022),
    "concatcomment": (_with('Description: "a" # c\n "b"'), EVERY),
    "delete": (_with('Description: "\x7f\x01"'), EVERY),
    "cronly": (_ID.replace(" ", "\r"), EVERY),
    "anglemix": (_with('Metrics < Metrics { Name: "m" } >'), EVERY),
    "falsew": (_metric('Name: "m" ShowInstances: f'), EVERY),
    "trueupper": (_metric('Name: "m" ShowInstances: TRUE'), NONE),
    "extension": (_with("[a.b]: 1"), NONE),
    "number": (_with("3: 1"), NONE),
    "identifierspace": ('Identifier: "{name} x" DisplayName: "{name}"', EVERY),
    "messagescalar": (_with("Metrics: 1"), NONE),
    "scalarmessage": (_with("Order { }"), NONE),
    "onenan": (_roof("Constant: nanf"), NONE),
    "inff": (_roof("Constant: inff"), NONE),
    "uppercaseF": (_roof("Constant: 1.5F"), EVERY),
    "floatexp": (_roof("Constant: 1e"), NONE),
    "overflow": (_roof("Constant: 1e999"), EVERY),
    "negativenumberenum": (_metric('Name: "m" Filter { MinArch: -1 }'), NONE),
    "int64big": (_with("Body { Items { BarChart { ValueAxis { TickCount: 9223372036854775808 } } } }"), NONE),
    "int64min": (_with("Body { Items { BarChart { ValueAxis { TickCount: -9223372036854775808 } } } }"), EVERY),
}


def probe_bytes(name: str) -> bytes:
    """The content of a probe."""
    text = PROBES[name][0]
    if isinstance(text, bytes):
        return text
    return text.replace("{name}", name).replace("{{", "{").replace("}}", "}").encode()
