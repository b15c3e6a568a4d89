/* A job of MPI: in each of ten steps a rank works in the region "work" as many units as its number and one more, and then all add up.
 * Beside it calls by Fortran's names, a file that all write, and calls while MPI_Pcontrol has it off. With an argument, that rank kills
 * itself after the steps.
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <topdown_region.h>

void mpi_barrier_(const MPI_Fint *comm, MPI_Fint *error);

static volatile double sink;

int main(int argc, char **argv)
{
	int rank, size;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	long sum = 0;
	for (int step = 0; step < 10; step++) {
		td_region_begin("work");
		for (long n = 0; n < 3000000L * (rank + 1); n++)
			sink += 1.0;
		td_region_end("work");
		long own = rank;
		MPI_Allreduce(&own, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	}
	if (argc > 1 && atoi(argv[1]) == rank)
		raise(SIGKILL);
	MPI_Fint error, world = MPI_Comm_c2f(MPI_COMM_WORLD);
	for (int n = 0; n < 3; n++)
		mpi_barrier_(&world, &error);
	MPI_Pcontrol(0);
	for (int n = 0; n < 5; n++)
		MPI_Barrier(MPI_COMM_WORLD);
	MPI_Pcontrol(1);
	char all[64];
	MPI_Status status;
	MPI_File file;
	char *name = getenv("MPI_JOB_FILE");
	MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
	/* (eight arguments, of which two are on the stack) */
	snprintf(all, sizeof all, "%08d", rank);
	MPI_File_write_at_all(file, 8 * (MPI_Offset)rank, all, 8, MPI_CHAR, &status);
	MPI_File_close(&file);
	int counts[] = { 1, 1, 1, 1 }, places[] = { 0, 1, 2, 3 }, given[] = { rank, rank, rank, rank }, got[4];
	MPI_Alltoallv(given, counts, places, MPI_INT, got, counts, places, MPI_INT, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%ld of %d ranks, %d%d%d%d\n", sum, size, got[0], got[1], got[2], got[3]);
	MPI_Finalize();
	return 0;
}
