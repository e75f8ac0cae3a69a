"""Other established names and spellings, and irregular word forms, that no rule of spelling can find."""

from __future__ import annotations

_SAME = """
united states | united states of america | usa | us of a | america
united kingdom | uk | great britain
soviet union | ussr | union of soviet socialist republics
germany | deutschland
finland | suomi
japan | nippon | nihon
greece | hellas
hungary | magyarorszag
switzerland | helvetia
wales | cymru
ireland | eire | hibernia
scotland | caledonia
netherlands | holland
iran | persia
thailand | siam
myanmar | burma
sri lanka | ceylon
ethiopia | abyssinia
taiwan | formosa
zimbabwe | rhodesia
beijing | peking
mumbai | bombay
kolkata | calcutta
chennai | madras
istanbul | constantinople | byzantium
saint petersburg | leningrad | petrograd
volgograd | stalingrad
oslo | christiania | kristiania
jakarta | batavia | djakarta
ho chi minh city | saigon
tokyo | edo
new york | new york city | nyc | big apple
paris | city of light
rome | eternal city
kyiv | kiev
dhaka | dacca
ulaanbaatar | ulan bator
guangzhou | canton
quran | koran | qur'an
hanukkah | chanukah
taoism | daoism
muammar gaddafi | gaddafi | qadhafi | qaddafi | kadhafi
mao zedong | mao tse tung
sun yat sen | sun zhongshan
mount everest | everest | chomolungma | sagarmatha
uluru | ayers rock
denali | mount mckinley
mars | red planet
venus | morning star | evening star
michael jackson | king of pop
elvis presley | king of rock and roll
mark twain | samuel clemens | samuel langhorne clemens
george orwell | eric blair
lewis carroll | charles dodgson
muhammad ali | cassius clay
pele | edson arantes do nascimento
john paul ii | karol wojtyla
myopia | short sightedness | nearsightedness | near sightedness
hypertension | high blood pressure
rubella | german measles
tetanus | lockjaw
kneecap | patella
collarbone | clavicle
shoulder blade | scapula
thighbone | femur
breastbone | sternum
aubergine | eggplant
courgette | zucchini
coriander | cilantro
association football | soccer | football
killer whale | orca
mountain lion | puma | cougar
reindeer | caribou
sodium chloride | table salt | common salt
nitrous oxide | laughing gas
carbon dioxide | co2
aids | acquired immune deficiency syndrome
dna | deoxyribonucleic acid
"""


def _table(lines: str) -> dict[str, tuple[str, ...]]:
    made: dict[str, tuple[str, ...]] = {}
    for line in lines.strip().splitlines():
        names = [name.strip() for name in line.split("|")]
        for name in names:
            made[name] = tuple(other for other in names if other != name)
    return made


OTHER_NAMES = _table(_SAME)
"""Lower-case name, without accents, to other names of the same thing."""

_IRREGULAR = {
    form: base
    for base, forms in {
        "child": "children", "foot": "feet", "goose": "geese", "louse": "lice", "man": "men", "mouse": "mice",
        "ox": "oxen", "person": "people", "tooth": "teeth", "woman": "women", "die": "dice",
        "swim": "swam swum swimming", "run": "ran running",
        "sing": "sang sung singing", "fly": "flew flown flying", "ride": "rode ridden riding", "row": "rowing rowed",
        "write": "wrote written writing", "dive": "dove diving dived", "drive": "drove driven driving",
        "skate": "skating skated", "fight": "fought fighting", "freeze": "froze frozen freezing",
        "weave": "wove woven weaving", "swear": "swore sworn",
    }.items()
    for form in forms.split()
}  # fmt: skip


def regular(word: str) -> str:
    """Return the base of an irregular plural or verb form, else the word (``geese`` -> ``goose``, ``wolves`` ->
    ``wolf``)."""
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if word.endswith("ves") and len(word) > 4:
        return word[:-3] + ("fe" if word[:-3] in ("kni", "li", "wi") else "f")
    return word
