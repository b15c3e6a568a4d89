"""libtopdown.so of this package by ctypes: the functions and structures of topdown.h that regions need.

Calls keep the interpreter's lock (PyDLL): they are short, and what a thread adds to its sums no other reads at that moment.
"""

import ctypes
import os
from ctypes import POINTER, byref, c_char, c_char_p, c_double, c_int, c_int32, c_size_t, c_uint32, c_uint64, c_void_p

from ._errors import Error

PATHS = {1: "RDPMC", 2: "read(2)", 3: "simulation"}
SIMULATE = 8  # TD_FLAG_SIMULATE


class Options(ctypes.Structure):
    _fields_ = [
        ("size", c_uint32),
        ("flags", c_uint32),
        ("target", c_uint32),
        ("id", c_int32),
        ("level", c_uint32),
        ("max_error_ppm", c_uint32),
        ("max_overhead_ppm", c_uint32),
        ("subtree", c_uint32),
        ("source", c_uint32),
        ("core_type", c_uint32),
        ("node_count", c_uint32),
        ("nodes", c_uint32 * 8),
        ("reserved", c_uint32 * 5),
    ]


class Info(ctypes.Structure):
    _fields_ = [
        ("size", c_uint32),
        ("path", c_uint32),
        ("level", c_uint32),
        ("slots_per_cycle", c_uint32),
        ("cpu", c_char * 64),
        ("pmu", c_char * 32),
        ("core", c_char * 48),
        ("note", c_char * 192),
        ("max_error_ppm", c_uint32),
        ("max_overhead_ppm", c_uint32),
        ("windows", c_uint64),
        ("windows_ns", c_uint64),
        ("counters", c_uint32),
        ("reserved", c_uint32),
    ]


class Node(ctypes.Structure):
    _fields_ = [
        ("size", c_uint32),
        ("flags", c_uint32),
        ("id", c_uint32),
        ("parent", c_uint32),
        ("level", c_uint32),
        ("unit", c_uint32),
        ("measured", c_uint32),
        ("reserved0", c_uint32),
        ("value", c_double),
        ("low", c_double),
        ("high", c_double),
        ("running", c_double),
        ("whole", c_uint64),
        ("reserved", c_uint64 * 3),
    ]


class Sum(ctypes.Structure):
    _fields_ = [
        ("size", c_uint32),
        ("flags", c_uint32),
        ("executions", c_uint64),
        ("slots", c_uint64),
        ("time_enabled_ns", c_uint64),
        ("time_running_ns", c_uint64),
        ("measured", c_uint64),
        ("measured_slots", c_uint64),
        ("unbalanced", c_uint64),
        ("reserved", c_uint64),
        ("opaque", c_uint64 * 131),
    ]


_library = ctypes.PyDLL(os.path.join(os.path.dirname(os.path.abspath(__file__)), "libtopdown.so"))


def _function(name, result, *arguments):
    function = getattr(_library, name)
    function.restype, function.argtypes = result, arguments
    return function


_open = _function("td_open", c_int, POINTER(c_void_p), POINTER(Options))
_get_info = _function("td_get_info", c_int, c_void_p, POINTER(Info))
_node_name = _function("td_node_name", c_char_p, c_uint32)
_node_id = _function("td_node_id", c_uint32, c_char_p)
_last_error = _function("td_last_error", c_int, c_char_p, c_size_t)
_decode = _function("td_sum_decode_tree", c_int, POINTER(Sum), POINTER(Node), c_uint32, POINTER(c_uint32))
close = _function("td_close", None, c_void_p)
# (addresses as numbers: what a region calls makes no objects)
sum_begin = _function("td_sum_begin", c_int, c_void_p, c_void_p)
sum_end = _function("td_sum_end", c_int, c_void_p, c_void_p)
version = _function("td_version", c_char_p)().decode()


def last_error(code, kind=Error):
    """The thread's last failure, with the text that says what, why and what to do."""
    length = _last_error(None, 0)
    text = ctypes.create_string_buffer(max(length, 0) + 1)
    _last_error(text, len(text))
    return kind(text.value.decode(errors="replace"), code)


def open_counters(options):
    """The handle of the calling thread's counters, or a negative code; and what it measures."""
    handle, info = c_void_p(), Info()
    code = _open(byref(handle), byref(options))
    if code:
        return code, None
    _get_info(handle, byref(info))
    return handle.value, info


def decode(total):
    """The nodes of a sum, with their names."""
    count = c_uint32()
    code = _decode(byref(total), None, 0, byref(count))
    nodes = (Node * count.value)()
    if not code and count.value:
        code = _decode(byref(total), nodes, count, byref(count))
    return code, [(node_name(node.id), node) for node in nodes]


def node_name(number):
    """perf's name of a node without "tma_"; None if there is no such node."""
    name = _node_name(number).decode()
    return (name[4:] if name.startswith("tma_") else name) or None


def node_number(name):
    return _node_id(name.encode())
