/* An MPI program that says which ranks it heard of: a sum over all, a ring of messages short and long, a broadcast. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    int rank, size, sum, left, word;
    static char sent[200000], got[200000];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    left = (rank + size - 1) % size;
    for (int length = 1; length <= (int)sizeof sent; length = length * 14 + 5) {
        memset(sent, 'a' + rank % 26, length);
        memset(got, 0, length);
        MPI_Sendrecv(sent, length, MPI_CHAR, (rank + 1) % size, 7, got, length, MPI_CHAR, left, 7, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        for (int i = 0; i < length; i++)
            if (got[i] != 'a' + left % 26) {
                fprintf(stderr, "rank %d got a wrong byte from rank %d\n", rank, left);
                MPI_Abort(MPI_COMM_WORLD, 9);
            }
    }
    word = rank == size - 1 ? 4711 : 0;
    MPI_Bcast(&word, 1, MPI_INT, size - 1, MPI_COMM_WORLD);
    if (argc > 1 && rank == 1)
        MPI_Abort(MPI_COMM_WORLD, atoi(argv[1]));
    MPI_Barrier(MPI_COMM_WORLD);
    printf("rank %d of %d: sum %d, word %d\n", rank, size, sum, word);
    MPI_Finalize();
    return 0;
}
