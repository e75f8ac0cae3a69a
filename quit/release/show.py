"""What a release says of itself, and what changed between two, in words."""

from __future__ import annotations

from quit.release.release import Release


def lines(release: Release) -> list[str]:
    """Return a release's description for a terminal."""
    facts, content = release.facts, release.content
    counts = facts["counts"]
    told = [f"Release {release.name}  {release.path}", f"content id {release.content_id}", ""]
    told.append("questions: " + ", ".join(f"{count:,} {split}" for split, count in counts["questions"].items()))
    told.append(f"passages: {counts['passages']:,}")
    total = facts["statistics"]["summary"][-1]
    for name in (
        "question_words",
        "passage_words",
        "answer_words",
        "lexical_overlap",
        "answer_containment",
        "semantic_similarity",
    ):
        if total[name] is not None:
            told.append(f"{name.replace('_', ' ')}: {total[name]:.2f}")
    told.append("")
    told += [
        f"source: {one['name']} {one['file']} ({one['licence'] or 'licence not stated'}), {one['checksum'][:12]}"
        for one in content["sources"]
    ]
    told += [f"{one['role']}: {one['name']} ({one['identity']})" for one in content["readers"]]
    told += [f"prompt: {use}: {one['name']}@{one['sha256_12']}" for use, one in content["prompts"].items()]
    reviews = content["reviews"]
    told.append(
        f"reviews: {reviews['reviews']:,} by {len(reviews['annotators'])} people; "
        f"{reviews['coverage']['share']:.1%} of the answers in {', '.join(reviews['coverage']['splits'])} judged by people"
    )
    told.append("")
    for gate in facts["gates"]:
        told.append(f"{gate['state']:7} {gate['gate']}" + (f": {gate['waiver']}" if gate["waiver"] else ""))
    return told
