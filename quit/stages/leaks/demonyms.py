"""Countries and other places whose adjective or inhabitants no rule of inflection can find."""

from __future__ import annotations

_LINES = """
france: french frenchman frenchmen frenchwoman
germany: german germans germanic
spain: spanish spaniard spaniards
portugal: portuguese
netherlands: dutch dutchman holland hollander
holland: dutch netherlands
england: english englishman englishmen englishwoman
britain: british briton britons
great britain: british briton britons
united kingdom: british briton britons uk
scotland: scottish scots scot scotsman scotch
wales: welsh welshman welshmen
ireland: irish irishman irishmen
denmark: danish dane danes
sweden: swedish swede swedes
norway: norwegian norwegians norse
finland: finnish finn finns
iceland: icelandic icelander icelanders
poland: polish pole poles
czech republic: czech czechs czechia
czechia: czech czechs
slovakia: slovak slovaks
slovenia: slovene slovenes
hungary: hungarian hungarians magyar magyars
greece: greek greeks hellenic
turkey: turkish turk turks
switzerland: swiss
belgium: belgian belgians
austria: austrian austrians
croatia: croatian croat croats
serbia: serbian serb serbs
china: chinese
japan: japanese
vietnam: vietnamese
thailand: thai thais
myanmar: burmese burma
philippines: filipino filipinos filipina philippine
afghanistan: afghan afghans
pakistan: pakistani pakistanis
bangladesh: bangladeshi
iraq: iraqi iraqis
iran: iranian iranians persian persia
israel: israeli israelis
lebanon: lebanese
egypt: egyptian egyptians
morocco: moroccan moroccans
argentina: argentine argentines argentinian
brazil: brazilian brazilians
chile: chilean chileans
peru: peruvian peruvians
mexico: mexican mexicans
canada: canadian canadians
united states: american americans usa
united states of america: american americans usa
new zealand: kiwi kiwis
cyprus: cypriot cypriots
monaco: monegasque
kosovo: kosovar
madagascar: malagasy
congo: congolese
malta: maltese
naples: neapolitan
venice: venetian venetians
florence: florentine florentines
paris: parisian parisians
london: londoner londoners
moscow: muscovite muscovites
vienna: viennese
rome: roman romans
athens: athenian athenians
liverpool: liverpudlian scouse
manchester: mancunian mancunians
glasgow: glaswegian
"""

DEMONYMS: dict[str, frozenset[str]] = {
    name.strip(): frozenset(forms.split())
    for name, _, forms in (line.partition(":") for line in _LINES.strip().splitlines())
}
"""Lower-case place name to its irregular adjectives and inhabitants."""
