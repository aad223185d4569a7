"""What the site needs beside MkDocs and its theme."""

import pathlib
import posixpath
import re

from mkdocs.structure.files import File

pages = {}  # those of a section, by its title, for llms.txt
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


def on_page_content(html, page, **_):
    """Pages are also there as Markdown, and llms.txt lists them, for programs that read."""
    if page.parent:
        pages.setdefault(page.parent.title, []).append(page)
    return html


def on_post_build(config, **_):
    """https://llmstxt.org"""
    index = f"# {config.site_name}\n\n> {config.site_description}\n"
    for section, listed in pages.items():
        index += f"\n## {section}\n\n"
        for page in listed:
            pathlib.Path(config.site_dir, page.file.src_uri).write_text(page.markdown)
            index += f"- [{page.title}]({config.site_url}{page.file.src_uri})\n"
    pathlib.Path(config.site_dir, "llms.txt").write_text(index)
    pages.clear()
