"""What the site needs beside MkDocs and its theme."""

import os
import pathlib
import posixpath
import re

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

pages = {}  # those of a section, by its title, for llms.txt
link = re.compile(r"\]\((\.\./[^)\s]*)\)")
diagrams = "assets/mermaid.min.js"


def on_config(config):
    """A site that is not published has no other versions: its pages do not ask for them."""
    if "WEIR_VERSION" not in os.environ:
        del config.extra["version"]
    return config


def on_files(files, config):
    """SECURITY.md, where GitHub looks for it, is a page as well."""
    text = pathlib.Path(config.docs_dir, "../SECURITY.md").read_text()
    files.append(File.generated(config, "security.md", content=text.replace("](docs/", "](")))
    script = pathlib.Path(__file__).parent / "node_modules/mermaid/dist/mermaid.min.js"
    if not script.exists():
        raise PluginError("the diagrams need Mermaid: run npm ci --prefix packaging/site")
    files.append(File.generated(config, diagrams, abs_src_path=str(script)))
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


def on_post_page(output, page, **_):
    return drawn(output, posixpath.dirname(page.url))


def drawn(html, folder):
    """The theme takes Mermaid from another host unless a page has it. Most pages need none."""
    if 'class="mermaid"' not in html:
        return html
    script = posixpath.relpath(diagrams, folder or ".")
    return html.replace("</head>", f'<script src="{script}"></script></head>', 1)


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
    together = pathlib.Path(config.site_dir, "print_page.html")  # no page when it is written
    together.write_text(drawn(together.read_text(), ""))
