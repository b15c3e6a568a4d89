/* A liblikwid that was not started by likwid-perfctr, as far as programs with markers notice: it measures nothing. */
#include <likwid.h>
#include <errno.h>
#include <stddef.h>

void likwid_markerInit(void) {}
void likwid_markerThreadInit(void) {}
void likwid_markerNextGroup(void) {}
void likwid_markerClose(void) {}
int likwid_markerWriteFile(const char *file) { return file ? -ENOENT : -EINVAL; }
int likwid_markerRegisterRegion(const char *tag) { return tag ? 0 : -EFAULT; }
int likwid_markerStartRegion(const char *tag) { return tag ? 0 : -EFAULT; }
int likwid_markerStopRegion(const char *tag) { return tag ? 0 : -EFAULT; }
int likwid_markerResetRegion(const char *tag) { return tag ? 0 : -EFAULT; }

void likwid_markerGetRegion(const char *tag, int *events, double *values, double *time, int *count)
{
    (void)tag;
    (void)values;
    *events = *count = 0;
    *time = 0;
}

int perfmon_getNumberOfGroups(void) { return -EINVAL; }
int perfmon_getNumberOfEvents(int group) { return group < 0 ? -EINVAL : 0; }
int perfmon_getNumberOfMetrics(int group) { return group < 0 ? -EINVAL : 0; }
int perfmon_getIdOfActiveGroup(void) { return -EINVAL; }
char *perfmon_getGroupName(int group) { (void)group; return NULL; }
char *perfmon_getEventName(int group, int event) { (void)group; (void)event; return NULL; }
char *perfmon_getCounterName(int group, int event) { (void)group; (void)event; return NULL; }
char *perfmon_getMetricName(int group, int metric) { (void)group; (void)metric; return NULL; }
