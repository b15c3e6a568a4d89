/* Where do the slots of this loop go? Java 22 or later. */
import static java.lang.foreign.ValueLayout.*;

import java.lang.foreign.*;
import java.lang.invoke.MethodHandle;

public class Region {
    static final Arena MEMORY = Arena.global();
    static final SymbolLookup LIBRARY = SymbolLookup.libraryLookup("libtopdown.so.0", MEMORY);

    static MethodHandle function(String name, MemoryLayout... arguments) {
        return Linker.nativeLinker().downcallHandle(LIBRARY.find(name).orElseThrow(), FunctionDescriptor.of(JAVA_INT, arguments));
    }

    static final MethodHandle OPEN = function("td_open", ADDRESS, ADDRESS);
    static final MethodHandle READ = function("td_read", ADDRESS, ADDRESS);
    static final MethodHandle DECODE = function("td_decode_l1", ADDRESS, ADDRESS, ADDRESS);
    static final MethodHandle LAST_ERROR = function("td_last_error", ADDRESS, JAVA_LONG);

    static String lastError() throws Throwable {
        MemorySegment text = MEMORY.allocate(1000);
        int length = (int) LAST_ERROR.invokeExact(text, 1000L);
        return text.getString(0);
    }

    public static void main(String[] arguments) throws Throwable {
        MemorySegment td = MEMORY.allocate(ADDRESS);
        if ((int) OPEN.invokeExact(td, MemorySegment.NULL) != 0) { // no counters here: say why, and go on with made-up ones
            System.out.println("SIMULATED: " + lastError());
            MemorySegment simulated = MEMORY.allocate(96, 8); // struct td_options
            simulated.set(JAVA_INT, 0, 96);
            simulated.set(JAVA_INT, 4, 8); // flags = TD_FLAG_SIMULATE
            if ((int) OPEN.invokeExact(td, simulated) != 0)
                System.exit(1);
        }
        MemorySegment handle = td.get(ADDRESS, 0);
        MemorySegment before = MEMORY.allocate(256, 8), after = MEMORY.allocate(256, 8); // struct td_sample
        MemorySegment shares = MEMORY.allocate(80, 8); // struct td_l1
        long sum = 0;
        int code = (int) READ.invokeExact(handle, before);
        for (int i = 0; i < 10000000; i++) // the region
            sum += i * sum + 1;
        code = (int) READ.invokeExact(handle, after);
        if ((int) DECODE.invokeExact(before, after, shares) != 0) {
            System.out.println("not measured: " + lastError());
            return;
        }
        System.out.printf("retiring %.1f %%, bad speculation %.1f %%, frontend bound %.1f %%, backend bound %.1f %%, each within %.1f points (%d)%n",
            100 * shares.get(JAVA_DOUBLE, 16), 100 * shares.get(JAVA_DOUBLE, 24), 100 * shares.get(JAVA_DOUBLE, 32),
            100 * shares.get(JAVA_DOUBLE, 40), 100 * shares.get(JAVA_DOUBLE, 48), sum);
    }
}
