/* What the preload library costs a program of so many threads, which all live at once: CPU time of a region, and memory of a thread. The first line is
 * without the library. Ratios of one run are what counts. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <topdown_region.h>
#include <unistd.h>

#define EXECUTIONS 2000
#define REGIONS 5
#define MOST_THREADS 1000

static pthread_barrier_t all;
static double ns[MOST_THREADS];

static double cpu_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void *thread(void *own)
{
	static const char *const names[REGIONS] = { "read", "parse", "solve", "check", "write" };
	for (int k = 0; k < REGIONS; k++) {
		td_region_begin(names[k]);
		td_region_end(names[k]);
	}
	double begin = cpu_ns();
	for (int n = 0; n < EXECUTIONS; n++) {
		td_region_begin(names[n % REGIONS]);
		td_region_end(names[n % REGIONS]);
	}
	*(double *)own = (cpu_ns() - begin) / EXECUTIONS;
	pthread_barrier_wait(&all); /* (who measures memory has all of them) */
	pthread_barrier_wait(&all);
	return NULL;
}

/* Private and shared memory, in KB. */
static long resident_kb(void)
{
	long pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");
	if (!file || fscanf(file, "%*d %ld", &pages) != 1)
		exit(1);
	fclose(file);
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void measure(int threads)
{
	pthread_t started[MOST_THREADS];
	long before = resident_kb();
	pthread_barrier_init(&all, NULL, (unsigned)threads + 1);
	for (int n = 0; n < threads; n++)
		if (pthread_create(&started[n], NULL, thread, &ns[n]))
			exit(1);
	pthread_barrier_wait(&all);
	long after = resident_kb();
	pthread_barrier_wait(&all);
	for (int n = 0; n < threads; n++)
		pthread_join(started[n], NULL);
	pthread_barrier_destroy(&all);
	qsort(ns, (size_t)threads, sizeof *ns, compare);
	printf("%7d threads: %7.0f ns a region (median of threads), %6.1f KB a thread\n", threads, ns[threads / 2],
	       (double)(after - before) / threads);
	fflush(stdout);
}

int main(int count, char **arguments)
{
	if (count == 1) {
		const char *counts[] = { "1000", "1", "10", "100", "1000" };
		for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
			pid_t child = fork();
			if (child == 0) {
				setenv("TOPDOWN_OUTPUT", "/dev/null", 1);
				setenv("LD_PRELOAD", k ? "target/release/libtopdown-preload.so" : "", 1);
				execl("/proc/self/exe", arguments[0], counts[k], (char *)NULL);
				return 1;
			}
			int status;
			if (child < 0 || waitpid(child, &status, 0) < 0 || status != 0)
				return 1;
		}
		return 0;
	}
	int threads = atoi(arguments[1]);
	if (threads < 1 || threads > MOST_THREADS)
		return 2;
	measure(threads);
	return 0;
}
