// Dialogs: the browser's own element, which limits the focus to it, and closes with Escape.
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'

interface DialogProps {
  title: string
  onClose: () => void
  children: ComponentChildren
  /** False while closing would lose what cannot be shown again. */
  closesWithEscape?: boolean
}

/** A modal dialog, open while it is rendered. */
export function Dialog({ title, onClose, children, closesWithEscape = true }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    const opener = document.activeElement
    element.current?.showModal()
    return () => {
      if (opener instanceof HTMLElement) opener.focus()
    }
  }, [])
  return (
    <dialog
      ref={element}
      aria-label={title}
      onCancel={(event) => {
        event.preventDefault()
        if (closesWithEscape) onClose()
      }}
    >
      <header class="dialog-head">
        <h2>{title}</h2>
        {closesWithEscape && (
          <button type="button" class="button small quiet" onClick={onClose} aria-label="Close">
            ✕
          </button>
        )}
      </header>
      {children}
    </dialog>
  )
}
