"""NVML, the driver's library that tells about GPUs, through ctypes: what the benchmark asks for and no more.

It makes no CUDA context.  Names, numbers and layouts are those of nvml.h; tests compare them with it.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

LIBRARY = "nvml.dll" if sys.platform == "win32" else "libnvidia-ml.so.1"
CLOCK_GRAPHICS, CLOCK_SM, CLOCK_MEMORY = 0, 1, 2
GPU_SENSOR = 0
POWER_POLICY, THERMAL_POLICY = 0, 1
MEMORY_TEMPERATURE, POWER_INSTANT = 82, 186
"""Field numbers: degrees Celsius; mW, of the GPU alone in scope 0."""
COMPUTE_MODES = {0: "default", 1: "exclusive thread", 2: "prohibited", 3: "exclusive process"}
_SUCCESS, _INSUFFICIENT_SIZE = 0, 7

Answer = TypeVar("Answer")


class NvmlError(Exception):
    """NVML is not there, or refused a call; says which and why."""


class PciInfo(ctypes.Structure):
    """``nvmlPciInfo_t``."""

    _fields_ = (
        ("busIdLegacy", ctypes.c_char * 16),
        ("domain", ctypes.c_uint),
        ("bus", ctypes.c_uint),
        ("device", ctypes.c_uint),
        ("pciDeviceId", ctypes.c_uint),
        ("pciSubSystemId", ctypes.c_uint),
        ("busId", ctypes.c_char * 32),
    )


class ViolationTime(ctypes.Structure):
    """``nvmlViolationTime_t``: microseconds of the CPU, nanoseconds below the clock."""

    _fields_ = (("referenceTime", ctypes.c_ulonglong), ("violationTime", ctypes.c_ulonglong))


class Value(ctypes.Union):
    """``nvmlValue_t``."""

    _fields_ = (
        ("dVal", ctypes.c_double),
        ("siVal", ctypes.c_int),
        ("uiVal", ctypes.c_uint),
        ("ulVal", ctypes.c_ulong),
        ("ullVal", ctypes.c_ulonglong),
        ("sllVal", ctypes.c_longlong),
        ("usVal", ctypes.c_ushort),
    )


class FieldValue(ctypes.Structure):
    """``nvmlFieldValue_t``."""

    _fields_ = (
        ("fieldId", ctypes.c_uint),
        ("scopeId", ctypes.c_uint),
        ("timestamp", ctypes.c_longlong),
        ("latencyUsec", ctypes.c_longlong),
        ("valueType", ctypes.c_uint),
        ("nvmlReturn", ctypes.c_uint),
        ("value", Value),
    )


VALUE_TYPES = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
"""Members of ``nvmlValue_t`` in the order of ``nvmlValueType_t``."""


class ProcessInfo(ctypes.Structure):
    """``nvmlProcessInfo_t`` of ``nvmlDeviceGetComputeRunningProcesses_v2`` and ``_v3``."""

    _fields_ = (
        ("pid", ctypes.c_uint),
        ("usedGpuMemory", ctypes.c_ulonglong),
        ("gpuInstanceId", ctypes.c_uint),
        ("computeInstanceId", ctypes.c_uint),
    )


class ProcessInfo1(ctypes.Structure):
    """``nvmlProcessInfo_v1_t``, before MIG."""

    _fields_ = (("pid", ctypes.c_uint), ("usedGpuMemory", ctypes.c_ulonglong))


_HANDLE, _TEXT, _UINT, _LONG = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint, ctypes.c_ulonglong
_CALLS: dict[str, tuple[tuple[Any, ...], tuple[Any, ...]]] = {
    "nvmlInit": ((), ()),
    "nvmlSystemGetDriverVersion": ((), (ctypes.c_char * 80,)),
    "nvmlSystemGetCudaDriverVersion": ((), (ctypes.c_int,)),
    "nvmlDeviceGetCount": ((), (_UINT,)),
    "nvmlDeviceGetHandleByIndex": ((_UINT,), (_HANDLE,)),
    "nvmlDeviceGetHandleByPciBusId": ((_TEXT,), (_HANDLE,)),
    "nvmlDeviceGetHandleByUUID": ((_TEXT,), (_HANDLE,)),
    "nvmlDeviceGetName": ((_HANDLE,), (ctypes.c_char * 96,)),
    "nvmlDeviceGetUUID": ((_HANDLE,), (ctypes.c_char * 96,)),
    "nvmlDeviceGetPciInfo": ((_HANDLE,), (PciInfo,)),
    "nvmlDeviceGetVbiosVersion": ((_HANDLE,), (ctypes.c_char * 32,)),
    "nvmlDeviceGetEccMode": ((_HANDLE,), (_UINT, _UINT)),
    "nvmlDeviceGetMigMode": ((_HANDLE,), (_UINT, _UINT)),
    "nvmlDeviceGetComputeMode": ((_HANDLE,), (_UINT,)),
    "nvmlDeviceGetPersistenceMode": ((_HANDLE,), (_UINT,)),
    "nvmlDeviceGetEnforcedPowerLimit": ((_HANDLE,), (_UINT,)),
    "nvmlDeviceGetPowerManagementDefaultLimit": ((_HANDLE,), (_UINT,)),
    "nvmlDeviceGetPowerUsage": ((_HANDLE,), (_UINT,)),
    "nvmlDeviceGetTotalEnergyConsumption": ((_HANDLE,), (_LONG,)),
    "nvmlDeviceGetApplicationsClock": ((_HANDLE, _UINT), (_UINT,)),
    "nvmlDeviceGetClockInfo": ((_HANDLE, _UINT), (_UINT,)),
    "nvmlDeviceGetTemperature": ((_HANDLE, _UINT), (_UINT,)),
    "nvmlDeviceGetCurrentClocksEventReasons": ((_HANDLE,), (_LONG,)),
    "nvmlDeviceGetViolationStatus": ((_HANDLE, _UINT), (ViolationTime,)),
    "nvmlDeviceGetCurrPcieLinkGeneration": ((_HANDLE,), (_UINT,)),
    "nvmlDeviceGetCurrPcieLinkWidth": ((_HANDLE,), (_UINT,)),
    "nvmlDeviceGetMaxPcieLinkGeneration": ((_HANDLE,), (_UINT,)),
    "nvmlDeviceGetMaxPcieLinkWidth": ((_HANDLE,), (_UINT,)),
}
"""What goes in and what comes out; an array of characters comes with its length."""
_SYMBOLS = {
    "nvmlInit": ("nvmlInit_v2", "nvmlInit"),
    "nvmlSystemGetCudaDriverVersion": ("nvmlSystemGetCudaDriverVersion_v2", "nvmlSystemGetCudaDriverVersion"),
    "nvmlDeviceGetCount": ("nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"),
    "nvmlDeviceGetHandleByIndex": ("nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"),
    "nvmlDeviceGetHandleByPciBusId": ("nvmlDeviceGetHandleByPciBusId_v2", "nvmlDeviceGetHandleByPciBusId"),
    "nvmlDeviceGetPciInfo": ("nvmlDeviceGetPciInfo_v3",),  # before it the structure was another
    "nvmlDeviceGetCurrentClocksEventReasons": (
        "nvmlDeviceGetCurrentClocksEventReasons",
        "nvmlDeviceGetCurrentClocksThrottleReasons",  # its name before driver 535
    ),
}
_PROCESSES = "nvmlDeviceGetComputeRunningProcesses"
_PROCESS_SYMBOLS = ((f"{_PROCESSES}_v3", ProcessInfo), (f"{_PROCESSES}_v2", ProcessInfo), (_PROCESSES, ProcessInfo1))


class Nvml:
    """The library, initialised by ``load``.  A device is a handle, a number without a meaning; what is refused is NvmlError."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self._found: dict[str, Callable[..., int]] = {}

    def ask(self, name: str, *inputs: Any) -> Any:
        """What a function of the table above tells: a number, a text, a structure or a handle, several as a tuple."""
        kinds, outputs = _CALLS[name]
        function = self._function(name, _SYMBOLS.get(name, (name,)))
        results = [kind() for kind in outputs]
        places: list[Any] = []
        for result in results:
            places += [result, ctypes.c_uint(len(result))] if isinstance(result, ctypes.Array) else [ctypes.byref(result)]
        given = [kind(value.encode() if kind is _TEXT else value) for kind, value in zip(kinds, inputs, strict=True)]
        self._check(name, function(*given, *places))
        values = tuple(_plain(result) for result in results)
        return values[0] if len(values) == 1 else values

    def fields(self, device: int, numbers: Sequence[int]) -> list[float | None]:
        """Values of fields, None for those that this GPU or driver does not have."""
        name = "nvmlDeviceGetFieldValues"
        values = (FieldValue * len(numbers))(*(FieldValue(fieldId=number) for number in numbers))
        self._check(name, self._function(name, (name,))(_HANDLE(device), ctypes.c_int(len(numbers)), values))
        return [
            getattr(value.value, VALUE_TYPES[value.valueType])
            if value.nvmlReturn == _SUCCESS and value.valueType < len(VALUE_TYPES)
            else None
            for value in values
        ]

    def processes(self, device: int) -> list[int]:
        """Numbers of the processes that compute on a device, as the host counts them (also inside a container)."""
        function = self._function(_PROCESSES, [symbol for symbol, _ in _PROCESS_SYMBOLS])
        layout = dict(_PROCESS_SYMBOLS)[function.__name__]
        count = ctypes.c_uint(0)
        code = function(_HANDLE(device), ctypes.byref(count), None)
        if code == _SUCCESS:
            return []
        if code != _INSUFFICIENT_SIZE:
            self._check(_PROCESSES, code)
        count.value += 16  # some may start between the two calls
        found = (layout * count.value)()
        self._check(_PROCESSES, function(_HANDLE(device), ctypes.byref(count), found))
        return [process.pid for process in found[: count.value]]

    def _function(self, name: str, symbols: Sequence[str]) -> Callable[..., int]:
        if name not in self._found:
            for symbol in symbols:
                function: Callable[..., int] | None = getattr(self._library, symbol, None)
                if function is not None:
                    self._found[name] = function
                    break
            else:
                raise NvmlError(f"{name}: this driver's NVML does not have it")
        return self._found[name]

    def _check(self, name: str, code: int) -> None:
        if code == _SUCCESS:
            return
        words = getattr(self._library, "nvmlErrorString", None)
        if words is None:
            raise NvmlError(f"{name}: error {code}")
        words.restype = ctypes.c_char_p
        raise NvmlError(f"{name}: {_plain(ctypes.c_char_p(words(code)))}")


def _plain(result: Any) -> Any:
    value = getattr(result, "value", result)
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def load(library: str = LIBRARY) -> Nvml:
    """NVML, ready to be asked.  NvmlError if it is not installed or finds no driver."""
    try:
        nvml = Nvml(ctypes.CDLL(library))
    except OSError as error:
        raise NvmlError(f"the NVIDIA driver's library {library} cannot be loaded ({error})") from None
    nvml.ask("nvmlInit")
    return nvml


def or_none(call: Callable[..., Answer], *inputs: Any) -> Answer | None:
    """The answer of a method of Nvml, None where it refuses: not supported, no permission and a lost GPU all mean unknown."""
    try:
        return call(*inputs)
    except NvmlError:
        return None
