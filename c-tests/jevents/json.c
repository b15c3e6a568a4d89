/* json_events: what is read of event files, in each of their shapes, and what callbacks are given. */
#include "event_files.h"

static const char object[] =
    "{ \"Header\": { \"Version\": \"1.03\", \"Nested\": { \"n\": [1, 2.5, null] } }, \"Count\": 2,\n"
    "  \"Events\": [\n"
    "    { \"EventCode\": \"0xB7,0xBB\", \"UMask\": \"0x01\", \"EventName\": \"OFFCORE.READS\", \"SampleAfterValue\": \"100003\",\n"
    "      \"BriefDescription\": \"Reads. \", \"MSRIndex\": \"0x1a6,0x1a7\", \"MSRValue\": \"0x0000010001\", \"PEBS\": \"0\" },\n"
    "    { \"Unit\": \"CHA\", \"EventCode\": \"0x35\", \"UMask\": \"0x01\", \"UMaskExt\": \"0x00C80FFD\", \"PortMask\": \"0x00\",\n"
    "      \"EventName\": \"UNC_CHA_TOR\", \"BriefDescription\": \"Entries\", \"Filter\": \"na\" }\n"
    "  ], \"Last\": true }\n";
static const char array[] =
    "[ { \"EventName\": \"A\", \"EventCode\": 60, \"UMask\": 0, \"Invert\": true, \"CounterMask\": 2, \"EdgeDetect\": false,\n"
    "    \"BriefDescription\": \"Intel\\u00ae \\\"A\\\"\" },\n"
    "  { \"MetricName\": \"IPC\", \"MetricExpr\": \"a / b\" },\n"
    "  { \"EventName\": \"B\", \"eventcode\": \"0x3\", \"Other\": null, \"List\": [ {} ], \"PEBS\": \"2\", \"Data_LA\": \"1\",\n"
    "    \"briefdescription\": \"What B is\" },\n"
    "  { \"EventName\": \"C\" } ]\n";

static int nested(void *data, char *name, char *event, char *desc, char *pmu)
{
    struct noted inner = {.text = ""};
    int *count = data;
    (void)event, (void)desc, (void)pmu;
    CHECK_EQ(json_events(event_path("object"), note_read, &inner), 0);
    CHECK_EQ(inner.count, 2);
    CHECK_EQ(read_events(event_path("array")), 0);
    CHECK_EQ(walk_events(note_walked, &inner), 0);
    CHECK_EQ(inner.count, 5);
    CHECK(strlen(name) == 1); /* as it was */
    ++*count;
    return 0;
}

int main(void)
{
    struct noted noted = {.text = ""};
    int count = 0;
    event_files_begin();
    event_file("object", object);
    event_file("array", array);

    CHECK_EQ(json_events(event_path("object"), note_read, &noted), 0);
    NOTED_IS(noted, "offcore.reads umask=0x01,period=100003,event=0xb7,offcore_rsp=0x0000010001 Reads cpu\n"
                    "unc_cha_tor umask=0xc80ffd01,event=0x35 Entries.  Unit: cha cha\n");
    noted = (struct noted){.text = ""};
    CHECK_EQ(json_events(event_path("array"), note_read, &noted), 0);
    NOTED_IS(noted, "a inv=1,cmask=2,event=0x3c Intel\302\256 \"A\" cpu\n"
                    "b event=0x3 What B is.  Supports address when precise (Must be precise) cpu\n"
                    "c event=0 No description. cpu\n");

    /* A callback ends it, and its value is returned. */
    for (int value = -2; value <= 2; value += 4) {
        noted = (struct noted){.text = "", .stop_after = 2, .value = value};
        CHECK_EQ(json_events(event_path("array"), note_read, &noted), value);
        CHECK_EQ(noted.count, 2);
    }
    CHECK_EQ(json_events(event_path("array"), nested, &count), 0);
    CHECK_EQ(count, 3);

    /* Nothing is called for a file with an error at its end. */
    const char *const wrong[] = {"", "x", "1", "[ { \"EventName\": \"a\" }", "[ { \"EventName\": \"a\" } ] x",
                                 "{ \"Events\": { \"EventName\": \"a\" } }"};
    noted = (struct noted){.text = ""};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK_EQ(json_events(event_file("wrong", wrong[i]), note_read, &noted), -EIO);
        CHECK_EQ(read_events(event_path("wrong")), -EIO);
    }
    CHECK_EQ(json_events(event_path("none"), note_read, &noted), -EIO);
    CHECK_EQ(json_events(event_files, note_read, &noted), -EIO);
    CHECK_EQ(json_events("", note_read, &noted), -EIO);
    CHECK_EQ(json_events(NULL, note_read, &noted), -ENOMEM); /* no variable is set */
    CHECK_EQ(noted.count, 0);
    CHECK_EQ(json_events(event_path("array"), NULL, NULL), -1);
    CHECK_EQ(json_events(event_file("empty", "[]"), note_read, &noted), 0);
    CHECK_EQ(noted.count, 0);

    /* An unknown register is said once in a process, whatever the number of events with one. */
    int ends[2], saved = dup(2);
    char said[256] = "";
    event_file("msr", "[ { \"EventName\": \"a\", \"MSRIndex\": \"0x123,1\", \"MSRValue\": \"1\" },"
                      "  { \"EventName\": \"b\", \"MSRIndex\": \"0x124\", \"MSRValue\": \"1\" } ]");
    CHECK_EQ(pipe(ends), 0);
    CHECK_EQ(dup2(ends[1], 2), 2);
    const int first = json_events(event_path("msr"), note_read, &noted), second = read_events(event_path("msr"));
    CHECK_EQ(dup2(saved, 2), 2);
    close(ends[1]);
    CHECK(read(ends[0], said, sizeof said - 1) > 0);
    CHECK_EQ(first, 0);
    CHECK_EQ(second, 0);
    if (strcmp(said, "Unknown MSR in event file 0x123,1\n") != 0)
        FAIL("said: %s", said);
    NOTED_IS(noted, "a event=0 No description. cpu\nb event=0 No description. cpu\n");
    return 0;
}
