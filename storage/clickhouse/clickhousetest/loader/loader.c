// Runs libchdb.so, which is all of ClickHouse, as a server: its arguments are those of
// `clickhouse local`. It ends with its standard input, so that it outlives no test.
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

struct result {
	char *text;
	size_t length;
	void *owner;
	double elapsed;
	uint64_t rows, bytes;
	char *error;
};

static void *watch(void *unused) {
	char c;
	while (read(0, &c, 1) > 0) {
	}
	_exit(0);
}

int main(int argc, char **argv) {
	void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
	struct result *(*run)(int, char **) = library ? dlsym(library, "query_stable_v2") : NULL;
	if (run == NULL) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	pthread_t watcher;
	pthread_create(&watcher, NULL, watch, NULL);
	struct result *r = run(argc - 1, argv + 1);
	if (r != NULL && r->error != NULL)
		fprintf(stderr, "%s\n", r->error);
	return 1;
}
