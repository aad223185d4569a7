"""What the site needs beside MkDocs and its theme."""

import pathlib
import posixpath
import re

from mkdocs.structure.files import File

link = re.compile(r"\]\((\.\./[^)\s]*)\)")


def on_files(files, config):
    """SECURITY.md, where GitHub looks for it, is a page as well."""
    text = pathlib.Path(config.docs_dir, "../SECURITY.md").read_text()
    files.append(File.generated(config, "security.md", content=text.replace("](docs/", "](")))
    return files


def on_page_markdown(markdown, page, config, **_):
    """Links to files of the repository that are no pages lead to the repository."""
    folder = posixpath.join("docs", posixpath.dirname(page.file.src_uri))

    def lead(match):
        path = posixpath.normpath(posixpath.join(folder, match[1]))
        return match[0] if path.startswith("docs/") else f"]({config.repo_url}/blob/main/{path})"

    return link.sub(lead, markdown)


def on_pre_page(page, config, **_):
    """The theme finds a page in another version by the sitemap, which must have the root."""
    if page.file.src_uri == "index.md":
        page.canonical_url = config.site_url.rstrip("/") + "/"
    return page
