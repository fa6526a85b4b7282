"""The program: `ncu-roofline`, and `python -m ncu_roofline`."""

try:
    import _thread
    import gc
    import os
    import signal
    import sys
    import time
except KeyboardInterrupt:
    raise SystemExit(130) from None

_SOON_SECONDS = 0.01
_OBJECTS = 500_000  # more than a short run makes: looking for garbage among what stays takes a tenth of its time
_hook = sys.unraisablehook


def main() -> int:
    """Run the command line; Ctrl-C ends it without a traceback, also while it imports and while it ends."""
    gc.set_threshold(_OBJECTS, *gc.get_threshold()[1:])
    try:
        listening = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if listening:
            signal.signal(signal.SIGINT, _leave)
    except KeyboardInterrupt:
        _leave()
    from ncu_roofline.cli import main as run

    sys.unraisablehook = _unraisable
    if listening:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return run()
    finally:
        gc.freeze()  # Python looks once more for garbage among all that there is when it ends
        if listening:
            signal.signal(signal.SIGINT, signal.SIG_DFL)


def _leave(*_: object) -> None:
    """There is nothing to tidy up yet, and an exception inside of an import may be taken for another one."""
    os.write(2, b"ncu-roofline: interrupted\n")
    os._exit(130)


def _unraisable(found: "sys.UnraisableHookArgs") -> None:
    """Python can't raise inside callbacks, of imports for instance: it would print a traceback and forget the interrupt."""
    if issubclass(found.exc_type, KeyboardInterrupt):
        _thread.start_new_thread(_interrupt_soon, ())
    else:
        _hook(found)


def _interrupt_soon() -> None:
    time.sleep(_SOON_SECONDS)
    _thread.interrupt_main()


if __name__ == "__main__":
    raise SystemExit(main())
