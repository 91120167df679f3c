// Texts of errors as the source writes them: literal text, and the names of what is filled in.
import ts from 'typescript'

/** A filled-in value: an argument of the surrounding function when `parameter` is true. */
export interface Hole {
  readonly name: string
  readonly parameter: boolean
}

/** One of the texts that an expression can have. */
export type Text = readonly (string | Hole)[]

/** The meaning of names at one position in a file. */
export interface Scope {
  isParameter: (name: string) => boolean
  /** The initial value of a constant of the file. */
  constant: (name: string) => ts.Expression | undefined
}

const maxTexts = 16

/** Returns all texts that the expression can have; a part that the source does not write is a hole. */
export function textsOf(expression: ts.Expression, scope: Scope, depth = 0): Text[] {
  const inner = (one: ts.Expression) => textsOf(one, scope, depth + 1)
  if (depth > 12) return [[{ name: 'value', parameter: false }]]
  if (ts.isStringLiteralLike(expression)) return [[expression.text]]
  if (ts.isNumericLiteral(expression)) return [[expression.text]]
  if (isWrapper(expression)) return inner(expression.expression)
  if (ts.isConditionalExpression(expression)) return [...inner(expression.whenTrue), ...inner(expression.whenFalse)]
  if (ts.isTemplateExpression(expression)) {
    return expression.templateSpans.reduce<Text[]>(
      (texts, span) => joined(texts, inner(span.expression), [[span.literal.text]]),
      [[expression.head.text]],
    )
  }
  if (ts.isBinaryExpression(expression)) {
    const { operatorToken, left, right } = expression
    if (operatorToken.kind === ts.SyntaxKind.PlusToken) return joined(inner(left), inner(right))
    // A default is of interest where it is words.
    if (operatorToken.kind === ts.SyntaxKind.QuestionQuestionToken)
      return ts.isStringLiteralLike(right) && /\p{L}/u.test(right.text)
        ? [...inner(left), ...inner(right)]
        : inner(left)
  }
  if (ts.isIdentifier(expression)) {
    if (scope.isParameter(expression.text)) return [[{ name: expression.text, parameter: true }]]
    const constant = scope.constant(expression.text)
    if (constant !== undefined && isText(constant)) return inner(constant)
  }
  return [[{ name: nameOf(expression), parameter: false }]]
}

/** Fills the parameters in. A parameter without an argument stays as a name. */
export function filled(texts: readonly Text[], argument: (name: string) => readonly Text[] | undefined): Text[] {
  return texts.flatMap((text) =>
    text.reduce<Text[]>(
      (all, part) =>
        joined(
          all,
          typeof part !== 'string' && part.parameter
            ? (argument(part.name) ?? [[{ ...part, parameter: false }]])
            : [[part]],
        ),
      [[]],
    ),
  )
}

/** Writes a text with `{name}` for what is filled in. */
export function written(text: Text): string {
  return text.map((part) => (typeof part === 'string' ? part : `{${part.name}}`)).join('')
}

/** Whether any of the texts has an argument of the surrounding function in it. */
export function hasParameter(texts: readonly Text[]): boolean {
  return texts.some((text) => text.some((part) => typeof part !== 'string' && part.parameter))
}

function joined(...all: (readonly Text[])[]): Text[] {
  return all.reduce<Text[]>(
    (before, after) => before.flatMap((a) => after.map((b) => [...a, ...b])).slice(0, maxTexts),
    [[]],
  )
}

function isWrapper(node: ts.Expression): node is ts.Expression & { readonly expression: ts.Expression } {
  return (
    ts.isParenthesizedExpression(node) ||
    ts.isAsExpression(node) ||
    ts.isSatisfiesExpression(node) ||
    ts.isAwaitExpression(node)
  )
}

function isText(node: ts.Expression): boolean {
  return (
    ts.isStringLiteralLike(node) ||
    ts.isTemplateExpression(node) ||
    ts.isConditionalExpression(node) ||
    ts.isBinaryExpression(node)
  )
}

/** A name for a value: of `tenant.name` and `String(name)` "name", of `names.join()` "names". */
function nameOf(expression: ts.Expression): string {
  if (ts.isIdentifier(expression)) return expression.text
  if (isWrapper(expression) || ts.isNonNullExpression(expression)) return nameOf(expression.expression)
  if (ts.isPropertyAccessExpression(expression)) {
    const { name, expression: object } = expression
    return ['length', 'size'].includes(name.text) ? nameOf(object) : name.text.replace(/^#/, '')
  }
  if (ts.isElementAccessExpression(expression)) return nameOf(expression.expression)
  if (ts.isBinaryExpression(expression)) return nameOf(expression.left)
  if (ts.isPrefixUnaryExpression(expression)) return nameOf(expression.operand)
  if (ts.isCallExpression(expression)) {
    const [first] = expression.arguments
    const { expression: called } = expression
    if (
      ts.isPropertyAccessExpression(called) &&
      !/^(?:JSON|Object|Math|Number|String)$/.test(called.expression.getText())
    )
      return nameOf(called.expression)
    return first === undefined ? nameOf(called) : nameOf(first)
  }
  return 'value'
}
