"""Other established names and word forms that WordNet lacks."""

from __future__ import annotations

_SAME = """
united kingdom | british | briton
great britain | briton
ireland | irishman
germany | germanic
czech republic | czechia
czechia | czech
philippines | filipina
kosovo | kosovar
madagascar | malagasy
moscow | muscovite
liverpool | scouse
greece | hellas
switzerland | helvetia
scotland | caledonia
istanbul | byzantium
oslo | kristiania
jakarta | batavia
new york | nyc | big apple
kyiv | kiev
volgograd | stalingrad
taoism | daoism
muammar gaddafi | qadhafi | qaddafi | kadhafi
mao zedong | mao tse tung
sun yat sen | sun zhongshan
mount everest | chomolungma | sagarmatha
uluru | ayers rock
venus | morning star | evening star
michael jackson | king of pop
elvis presley | king of rock and roll
mark twain | samuel clemens
pele | edson arantes do nascimento
myopia | short sightedness | near sightedness
association football | football
sodium chloride | table salt | nacl
water | h2o
ammonia | nh3
methane | ch4
ozone | o3
hydrogen peroxide | h2o2
sulfuric acid | h2so4
nitric acid | hno3
hydrochloric acid | hcl
carbon dioxide | co2
calcium carbonate | caco3
iron oxide | fe2o3
glucose | c6h12o6
sodium hydroxide | naoh
sulfur dioxide | so2
silicon dioxide | sio2
nitrous oxide | n2o
oxygen | o2
hydrogen | h2
nitrogen | n2
potassium nitrate | kno3
baking soda | nahco3
ethanol | c2h5oh
acetic acid | ch3cooh
person | people
frank sinatra | ol blue eyes | old blue eyes
aretha franklin | queen of soul
james brown | godfather of soul
madonna | queen of pop
babe ruth | sultan of swat
mike tyson | iron mike
abraham lincoln | honest abe
ronald reagan | the gipper
otto von bismarck | iron chancellor
elizabeth i | virgin queen
louis xiv | sun king
manfred von richthofen | red baron
erwin rommel | desert fox
duke of wellington | iron duke
florence nightingale | lady with the lamp
marilyn monroe | norma jeane
charlie chaplin | little tramp
beatles | fab four
australia | down under
munich | munchen
austria | osterreich
vienna | wien
moscow | moskva
detroit | motor city | motown
las vegas | sin city
new orleans | big easy
boston | beantown
philadelphia | city of brotherly love
japan | land of the rising sun
new zealand | aotearoa
"""


def _table(lines: str) -> dict[str, frozenset[str]]:
    others: dict[str, frozenset[str]] = {}
    for line in lines.strip().splitlines():
        names = frozenset(name.strip() for name in line.split("|"))
        for name in names:
            others[name] = others.get(name, frozenset()) | names - {name}
    return others


OTHER_NAMES = _table(_SAME)
"""Lower-case name, without accents, to other names of the same thing."""
