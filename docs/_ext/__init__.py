"""Parts of the site that are made when it is built: pages, links, and the terms of the glossary."""
