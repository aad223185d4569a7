"""Links to files of the repository that are no pages lead to the repository."""

import posixpath
import re

link = re.compile(r"\]\((\.\./[^)\s]*)\)")


def on_page_markdown(markdown, page, config, **_):
    folder = posixpath.join("docs", posixpath.dirname(page.file.src_uri))

    def lead(match):
        path = posixpath.normpath(posixpath.join(folder, match[1]))
        return match[0] if path.startswith("docs/") else f"]({config.repo_url}/blob/main/{path})"

    return link.sub(lead, markdown)
