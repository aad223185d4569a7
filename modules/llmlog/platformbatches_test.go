package llmlog
