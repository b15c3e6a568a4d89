/* What programs with LIKWID's markers call, declared as LIKWID 4.3 to 5.4 do, for tests where it is not installed. */
#ifndef LIKWID_STUB_H
#define LIKWID_STUB_H

#ifdef LIKWID_PERFMON
#define LIKWID_MARKER_INIT likwid_markerInit()
#define LIKWID_MARKER_THREADINIT likwid_markerThreadInit()
#define LIKWID_MARKER_SWITCH likwid_markerNextGroup()
#define LIKWID_MARKER_REGISTER(tag) likwid_markerRegisterRegion(tag)
#define LIKWID_MARKER_START(tag) likwid_markerStartRegion(tag)
#define LIKWID_MARKER_STOP(tag) likwid_markerStopRegion(tag)
#define LIKWID_MARKER_CLOSE likwid_markerClose()
#define LIKWID_MARKER_WRITE_FILE(file) likwid_markerWriteFile(file)
#define LIKWID_MARKER_RESET(tag) likwid_markerResetRegion(tag)
#define LIKWID_MARKER_GET(tag, events, values, time, count) likwid_markerGetRegion(tag, events, values, time, count)
#else
#error "these tests are of programs that have markers: -DLIKWID_PERFMON"
#endif

void likwid_markerInit(void);
void likwid_markerThreadInit(void);
void likwid_markerNextGroup(void);
void likwid_markerClose(void);
int likwid_markerWriteFile(const char *file);
int likwid_markerRegisterRegion(const char *tag);
int likwid_markerStartRegion(const char *tag);
int likwid_markerStopRegion(const char *tag);
int likwid_markerResetRegion(const char *tag);
void likwid_markerGetRegion(const char *tag, int *events, double *values, double *time, int *count);

int perfmon_getNumberOfGroups(void);
int perfmon_getNumberOfEvents(int group);
int perfmon_getNumberOfMetrics(int group);
int perfmon_getIdOfActiveGroup(void);
char *perfmon_getGroupName(int group);
char *perfmon_getEventName(int group, int event);
char *perfmon_getCounterName(int group, int event);
char *perfmon_getMetricName(int group, int metric);
#endif
