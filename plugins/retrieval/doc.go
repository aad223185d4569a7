// Package retrieval translates what a search needs beside a database: OpenAI's Embeddings
// (https://platform.openai.com/docs/api-reference/embeddings/create) and Cohere's Rerank
// (https://docs.cohere.com/reference/rerank). Embeddings and Rerank read a client's request and
// write its answer; plugins of vendors write and read what is between. Vendors that serve nothing
// else are a line of the table here.
package retrieval
