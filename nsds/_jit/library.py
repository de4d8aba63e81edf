"""Compiled code that is compiled once: callers copy what is short, and refer to the rest.

numba by itself puts all that a function calls, and all that this calls, into the code of each caller, and compiles it there again.
"""

from llvmlite import binding
from numba.core.codegen import JITCodeLibrary


class Library(JITCodeLibrary):
    """Code of one kernel. Whoever links it must keep it: of functions that are not copied it knows the symbols only."""

    _bitcode = b""

    def _get_module_for_linking(self):
        """The code for callers to copy from: LLVM does that where it pays, and then forgets it."""
        self._ensure_finalized()
        if self._shared_module is None:
            self._shared_module = binding.parse_bitcode(self._bitcode) if self._bitcode else self._final_module.clone()
            for function in self._shared_module.functions:
                if not function.is_declaration and function.linkage == binding.Linkage.external:
                    function.linkage = "available_externally"
        return self._shared_module

    @classmethod
    def restored(cls, codegen, name, code, bitcode, symbols):
        """From machine code, which defines these symbols, and what `_get_module_for_linking` gave, which is parsed when it is asked for."""
        self = cls(codegen, name)
        self.enable_object_caching()
        self._set_compiled_object(code)
        self._bitcode = bitcode
        self._finalize_final_module()
        codegen._engine._defined_symbols.update(symbols)
        return self
