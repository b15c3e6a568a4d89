/* topdown run -- ./marked   tells of the region "sum". */
#include <stdio.h>
#include <topdown_region.h>

int main(void)
{
    double sum = 0;

    td_region_begin("sum");
    for (int i = 1; i <= 10000000; i++)
        sum += 1.0 / i;
    td_region_end("sum");
    printf("%f\n", sum);
    return 0;
}
