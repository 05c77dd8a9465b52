;;; torchmemlint.el --- torchmemlint in Eglot -*- lexical-binding: t -*-

;; Emacs 29 and newer; Emacs 26.3 to 28 with the package `eglot'.  Load this file from your init file.
;; Eglot runs one server for a buffer: where you use another one for Python, start this one by hand
;; with `C-u M-x eglot', or let a multiplexer of language servers run both.

(with-eval-after-load 'eglot
  (add-to-list 'eglot-server-programs
               '((python-mode python-ts-mode) . ("torchmemlint" "server"))))

(add-hook 'python-mode-hook #'eglot-ensure)
(add-hook 'python-ts-mode-hook #'eglot-ensure)

(provide 'torchmemlint)
;;; torchmemlint.el ends here
