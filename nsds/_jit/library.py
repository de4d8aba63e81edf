"""Code that is compiled once: callers inline short code, and refer to the rest.

numba by itself puts all callees, and their callees, into the code of each caller, and compiles them there again.
"""

from llvmlite import binding
from numba.core.codegen import JITCodeLibrary

_LONG = 400  # instructions, far above what LLVM inlines profitably: longer code is not offered for inlining


def _is_long(module):
    return sum(line.startswith("  ") for line in str(module).splitlines()) > _LONG


class Library(JITCodeLibrary):
    """Code of one kernel. Users of it must keep it alive: of functions that are not inlined only symbols are known."""

    _bitcode = b""

    def _optimize_functions(self, module):
        module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self):
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)

    def _get_module_for_linking(self):
        """Code for callers to inline, which LLVM does where it pays, and then drops."""
        self._ensure_finalized()
        if self._shared_module is None:
            if self._bitcode:
                self._shared_module = binding.parse_bitcode(self._bitcode)
            elif _is_long(self._final_module):
                self._shared_module = binding.parse_assembly("")
            else:
                self._shared_module = self._final_module.clone()
            for function in self._shared_module.functions:
                if not function.is_declaration and function.linkage == binding.Linkage.external:
                    function.linkage = "available_externally"
        return self._shared_module

    @classmethod
    def restored(cls, codegen, name, code, bitcode, symbols):
        """Restores from machine code, which defines these symbols, and bitcode of `_get_module_for_linking`, parsed on demand."""
        self = cls(codegen, name)
        self.enable_object_caching()
        self._set_compiled_object(code)
        self._bitcode = bitcode
        self._finalize_final_module()
        codegen._engine._defined_symbols.update(symbols)
        return self


class Pieces(JITCodeLibrary):
    """Code that callers inline: it is optimised only inside them, and has no machine code of its own."""

    _bitcode = b""

    def _optimize_final_module(self):
        pass

    def _finalize_final_module(self):
        self._finalize_dynamic_globals()
        self._finalized = True

    def _get_module_for_linking(self):
        """Code for callers to inline, as numba has it."""
        if self._shared_module is None and self._bitcode:
            self._shared_module = binding.parse_bitcode(self._bitcode)
        return super()._get_module_for_linking()

    def serialize_using_object_code(self):
        """No machine code, and the code for callers."""
        return self.name, "object", (b"", self._get_module_for_linking().as_bitcode())

    @classmethod
    def restored(cls, codegen, name, bitcode):
        """Restores from the result of `_get_module_for_linking`, which is parsed on demand."""
        self = cls(codegen, name)
        self._bitcode, self._finalized = bitcode, True
        return self
