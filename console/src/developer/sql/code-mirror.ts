// The SQL editor: CodeMirror 6. Only the SQL screen loads this file, with a dynamic import. The editor is in a shadow root, where its
// styles are sheets that a script adopts: the page's policy forbids elements with inline styles, which it would create elsewhere.
import {
  acceptCompletion,
  autocompletion,
  closeBrackets,
  closeBracketsKeymap,
  closeCompletion,
  completionKeymap,
  selectedCompletion,
} from '@codemirror/autocomplete'
import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands'
import { PostgreSQL, sql } from '@codemirror/lang-sql'
import { bracketMatching, HighlightStyle, syntaxHighlighting } from '@codemirror/language'
import { Compartment, EditorState, Prec, StateEffect, StateField } from '@codemirror/state'
import {
  Decoration,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  keymap,
  lineNumbers,
  placeholder,
  type DecorationSet,
} from '@codemirror/view'
import { tags } from '@lezer/highlight'

/** Names of the tenant's tables with those of their columns. */
export type TableNames = Readonly<Record<string, readonly string[]>>

/** Functions that the editor calls. */
export interface EditorListeners {
  /** Called after each change of the text or of the selection. */
  onChange: (state: EditorText) => void
  onRun: () => void
}

/** The text of the editor, and the selected part of it. */
export interface EditorText {
  text: string
  selection: { from: number; to: number }
}

/** An open editor. */
export interface Editor {
  /** Completes these names. */
  setTables: (tables: TableNames) => void
  /** Underlines the word at an offset until the text changes; undefined underlines nothing. */
  markError: (offset: number | undefined) => void
  close: () => void
}

const label = 'Statement'
const hint = 'Control+Enter runs the statement. Tab indents. Escape, then Tab leaves the editor.'

/** Opens an editor in an element, and gives it the focus never by itself. The colours are those of the page's theme. */
export function openEditor(parent: HTMLElement, text: string, { onChange, onRun }: EditorListeners): Editor {
  // An element has one shadow root for good.
  const root = parent.shadowRoot ?? parent.attachShadow({ mode: 'open' })
  const description = document.createElement('p')
  description.id = 'hint'
  description.hidden = true
  description.textContent = hint
  const frame = document.createElement('div')
  root.replaceChildren(description, frame)
  const language = new Compartment()
  const run = () => {
    onRun()
    return true
  }
  const view = new EditorView({
    root,
    parent: frame,
    state: EditorState.create({
      doc: text,
      extensions: [
        Prec.highest(
          keymap.of([
            { key: 'Mod-Enter', run },
            { key: 'Ctrl-Enter', run },
            { key: 'Enter', run: closeTyped },
          ]),
        ),
        keymap.of([
          ...closeBracketsKeymap,
          ...completionKeymap,
          { key: 'Tab', run: acceptCompletion },
          indentWithTab,
          ...historyKeymap,
          ...defaultKeymap,
        ]),
        lineNumbers(),
        history(),
        bracketMatching(),
        closeBrackets(),
        autocompletion({ icons: false }),
        highlightActiveLine(),
        highlightActiveLineGutter(),
        EditorView.lineWrapping,
        placeholder('select * from notes limit 20'),
        language.of(sqlOf({})),
        syntaxHighlighting(colours),
        errorMark,
        replacement,
        theme,
        EditorView.contentAttributes.of({ 'aria-label': label, 'aria-describedby': 'hint' }),
        EditorView.updateListener.of(({ docChanged, selectionSet, state }) => {
          if (!docChanged && !selectionSet) return
          const { from, to } = state.selection.main
          onChange({ text: state.doc.toString(), selection: { from, to } })
        }),
      ],
    }),
  })
  return {
    setTables: (tables) => view.dispatch({ effects: language.reconfigure(sqlOf(tables)) }),
    markError(offset) {
      view.dispatch({ effects: setError.of(offset === undefined ? undefined : wordAt(view.state, offset)) })
    },
    close: () => view.destroy(),
  }
}

/**
 * Replaces a selection by what is typed. A browser would do it with an element that has an inline style, to retain the colour of the
 * former text, and the page's policy forbids it.
 */
const replacement = EditorView.domEventHandlers({
  beforeinput({ inputType, data }, view) {
    if (inputType !== 'insertText' || data === null || view.composing) return false
    const { from, to } = replacedRange(view)
    if (from === to) return false
    const insert = () =>
      view.state.update({
        changes: { from, to, insert: data },
        selection: { anchor: from + data.length },
        userEvent: 'input.type',
        scrollIntoView: true,
      })
    const isHandled = view.state.facet(EditorView.inputHandler).some((handle) => handle(view, from, to, data, insert))
    if (!isHandled) view.dispatch(insert())
    // The browser then does nothing.
    return true
  },
})

/** Returns what an input replaces: the browser's selection, which the editor may not know yet. */
function replacedRange(view: EditorView): Range {
  // Chromium has the selection in the shadow root, other browsers in the document.
  const root = view.root as ShadowRoot & { getSelection?: () => Selection | null }
  const selection = root.getSelection === undefined ? document.getSelection() : root.getSelection()
  const { main } = view.state.selection
  if (selection === null) return main
  const { anchorNode, anchorOffset, focusNode, focusOffset } = selection
  if (anchorNode === null || focusNode === null || !view.contentDOM.contains(anchorNode)) return main
  const ends = [view.posAtDOM(anchorNode, anchorOffset), view.posAtDOM(focusNode, focusOffset)]
  return { from: Math.min(...ends), to: Math.max(...ends) }
}

/** Closes the completion of a word that is there already, so that Enter begins a line, as it does without a completion. */
function closeTyped(view: EditorView): boolean {
  const selected = selectedCompletion(view.state)
  if (selected === null) return false
  const text = typeof selected.apply === 'string' ? selected.apply : selected.label
  const { head } = view.state.selection.main
  const typed = view.state.sliceDoc(head - text.length, head)
  if (typed.toLowerCase() === text.toLowerCase()) closeCompletion(view)
  // The next binding of the key decides what else happens.
  return false
}

function sqlOf(tables: TableNames) {
  // A dot in a key would be the end of a schema's name.
  const schema = Object.fromEntries(
    Object.entries(tables).map(([name, columns]) => [name.replaceAll(/[\\.]/g, String.raw`\$&`), columns]),
  )
  // Names of tables and columns are more often meant than one of the 800 keywords.
  const keywordCompletion = (text: string, type: string) => ({ label: text, type, boost: -10 })
  return sql({ dialect: PostgreSQL, schema, keywordCompletion })
}

interface Range {
  from: number
  to: number
}

function wordAt(state: EditorState, offset: number): Range | undefined {
  const length = state.doc.length
  if (length === 0) return undefined
  const from = Math.min(offset, length - 1)
  return { from, to: Math.max(state.wordAt(from)?.to ?? from + 1, from + 1) }
}

const setError = StateEffect.define<Range | undefined>()
const errorMark = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(marks, { effects, docChanged }) {
    for (const effect of effects)
      if (effect.is(setError))
        return effect.value === undefined
          ? Decoration.none
          : Decoration.set(Decoration.mark({ class: 'cm-error' }).range(effect.value.from, effect.value.to))
    return docChanged ? Decoration.none : marks
  },
  provide: (field) => EditorView.decorations.from(field),
})

const colours = HighlightStyle.define([
  { tag: tags.keyword, color: 'var(--accent)', fontWeight: '600' },
  { tag: [tags.string, tags.special(tags.string)], color: 'var(--good)' },
  { tag: [tags.number, tags.bool, tags.null], color: 'var(--warn)' },
  { tag: [tags.lineComment, tags.blockComment], color: 'var(--text-dim)', fontStyle: 'italic' },
  { tag: [tags.typeName, tags.standard(tags.name)], color: 'var(--info)' },
])

const theme = EditorView.theme({
  '&': {
    border: '1px solid var(--line-strong)',
    borderRadius: '8px',
    backgroundColor: 'var(--surface)',
    color: 'var(--text)',
    fontSize: '0.875rem',
    overflow: 'hidden',
  },
  '&.cm-focused': { outline: '2px solid var(--accent)', outlineOffset: '2px' },
  '.cm-scroller': {
    maxHeight: '60vh',
    overflow: 'auto',
    fontFamily: 'var(--mono)',
    lineHeight: '1.5',
  },
  '.cm-content, .cm-gutter': { minHeight: '13.5em' },
  '.cm-content': { padding: '8px 0', caretColor: 'var(--text)' },
  '.cm-line': { padding: '0 10px' },
  '.cm-placeholder': { color: 'var(--text-dim)' },
  '.cm-gutters': {
    borderRight: '1px solid var(--line)',
    backgroundColor: 'var(--surface-2)',
    color: 'var(--text-dim)',
  },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'transparent' },
  '&.cm-focused .cm-activeLine': { backgroundColor: 'color-mix(in srgb, var(--accent) 6%, transparent)' },
  '&.cm-focused .cm-activeLineGutter': { color: 'var(--text)' },
  '.cm-content ::selection, &.cm-focused .cm-content ::selection': { backgroundColor: 'var(--accent-soft)' },
  '&.cm-focused .cm-matchingBracket': { backgroundColor: 'var(--accent-soft)' },
  '&.cm-focused .cm-nonmatchingBracket': { backgroundColor: 'var(--bad-soft)', color: 'var(--bad)' },
  '.cm-error': { textDecoration: 'underline wavy var(--bad)', textUnderlineOffset: '3px' },
  '.cm-tooltip': {
    border: '1px solid var(--line-strong)',
    borderRadius: '8px',
    backgroundColor: 'var(--surface)',
    color: 'var(--text)',
    boxShadow: 'var(--shadow)',
    overflow: 'hidden',
  },
  '.cm-tooltip.cm-tooltip-autocomplete > ul': { maxHeight: '15em', fontFamily: 'var(--mono)' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul > li': { padding: '3px 10px' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]': {
    backgroundColor: 'var(--accent)',
    color: 'var(--accent-text)',
  },
  '.cm-completionMatchedText': { fontWeight: '700', textDecoration: 'none' },
})
