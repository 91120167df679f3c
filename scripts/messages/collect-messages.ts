// Collects the texts of all errors that a part creates, from its sources: `new` of any class of errors, functions that pass
// their arguments to one, and objects with `code` and `message`.
import ts from 'typescript'
import { filled, hasParameter, textsOf, written, type Scope, type Text } from './text.ts'

/** A source file. */
export interface Source {
  readonly file: string
  readonly source: string
}

/** An error that a function or a constructor makes of its arguments. */
interface Template {
  readonly codes: readonly Text[]
  readonly messages: readonly Text[]
}

interface Factory {
  readonly parameters: readonly string[]
  readonly templates: Map<string, Template>
  isCalled: boolean
}

/** A constructor's parameters, and the error that it makes of them. */
interface Constructed {
  readonly parameters: readonly string[]
  readonly template: Template
}

type FunctionNode =
  ts.FunctionDeclaration | ts.ArrowFunction | ts.FunctionExpression | ts.MethodDeclaration | ts.ConstructorDeclaration

const builtIn = ['Error', 'RangeError', 'SyntaxError', 'TypeError']
/** More than any function's arguments are passed through others. */
const maxPasses = 6

/**
 * Returns a line for each message: status and code where the error has them, else the name of its class, and the text with
 * `{name}` for what is filled in. Sorted, each once.
 */
export function collectMessages(sources: readonly Source[]): string[] {
  const files = sources.map(({ file, source }) => ts.createSourceFile(file, source, ts.ScriptTarget.Latest, true))
  const classes = errorClasses(files)
  const statuses = new Map(files.flatMap(statusesOf))
  const factories = new Map<ts.Node, Factory>()
  const named = new Map<string, { file: ts.SourceFile; node: FunctionNode }[]>()
  for (const file of files) walk(file, (node) => addFunction(file, node))
  const lines = new Set<string>()

  for (let pass = 0, before = -1; pass < maxPasses && before !== size(); pass++) {
    before = size()
    for (const file of files) collectFrom(file)
  }
  for (const { templates, isCalled } of factories.values())
    if (!isCalled) for (const template of templates.values()) addLines(template)
  return [...lines].toSorted()

  function size(): number {
    return lines.size + [...factories.values()].reduce((sum, { templates }) => sum + templates.size, 0)
  }

  function addFunction(file: ts.SourceFile, node: ts.Node): void {
    if (!isFunction(node)) return
    const name = functionName(node)
    if (name !== undefined) named.set(name, [...(named.get(name) ?? []), { file, node }])
  }

  function collectFrom(file: ts.SourceFile): void {
    const constants = constantsOf(file)
    walk(file, (node) => {
      const scope = scopeOf(node, constants)
      if (ts.isNewExpression(node) && ts.isIdentifier(node.expression)) {
        const made = classes.get(node.expression.text)
        if (made !== undefined) add(node, fill(made.template, made.parameters, node.arguments ?? [], scope))
      } else if (ts.isCallExpression(node)) {
        for (const factory of calledFactories(file, node)) {
          factory.isCalled = true
          for (const template of factory.templates.values())
            add(node, fill(template, factory.parameters, node.arguments, scope))
        }
      } else if (ts.isObjectLiteralExpression(node)) {
        const template = objectTemplate(node, scope)
        if (template !== undefined) add(node, template)
      }
    })
  }

  /** Keeps a template with the function whose arguments it has, or writes its lines. */
  function add(node: ts.Node, template: Template): void {
    const owner = hasParameter([...template.messages, ...template.codes]) ? ownerOf(node) : undefined
    if (owner === undefined) addLines(template)
    else if (!ts.isConstructorDeclaration(owner)) {
      const factory = factories.get(owner) ?? {
        parameters: parametersOf(owner),
        templates: new Map<string, Template>(),
        isCalled: false,
      }
      factories.set(owner, factory)
      factory.templates.set(JSON.stringify(template), template)
    }
  }

  function addLines({ codes, messages }: Template): void {
    const code = [...new Set(codes.map(written))].join('|')
    const status = statuses.get(code)
    for (const message of messages) {
      const text = written(message).replaceAll(/\s+/g, ' ').trim()
      // What only passes another text on has none of its own.
      if (/^(?:\{[^{}]*\}|[^\p{L}]*)$/u.test(text)) continue
      lines.add(`${status === undefined ? '' : `${status} `}${code}: ${text}`)
    }
  }

  function calledFactories(file: ts.SourceFile, call: ts.CallExpression): Factory[] {
    const called = call.expression
    const isMember = ts.isPropertyAccessExpression(called)
    const name = isMember ? called.name.text : ts.isIdentifier(called) ? called.text : undefined
    const all = name === undefined ? [] : (named.get(name) ?? [])
    const own = all.filter((one) => one.file === file)
    const importedAs = isMember || name === undefined ? undefined : importOf(file, name)
    const others =
      importedAs === undefined
        ? []
        : (named.get(importedAs.name) ?? []).filter((one) => importedAs.matches(one.file.fileName))
    return (own.length > 0 ? own : others).flatMap(({ node }) => factories.get(node) ?? [])
  }
}

function fill(
  template: Template,
  parameters: readonly string[],
  values: readonly ts.Expression[],
  scope: Scope,
): Template {
  const argument = (name: string): Text[] | undefined => {
    const value = values[parameters.indexOf(name)]
    return value === undefined ? undefined : textsOf(value, scope)
  }
  return { codes: filled(template.codes, argument), messages: filled(template.messages, argument) }
}

/** Error classes by name, with what their constructors make of their arguments. */
function errorClasses(
  files: readonly ts.SourceFile[],
): Map<string, { parameters: readonly string[]; template: Template }> {
  const message = { name: 'message', parameter: true }
  const found = new Map<string, Constructed>()
  for (const name of builtIn)
    found.set(name, { parameters: ['message'], template: { codes: [[name]], messages: [[message]] } })
  const declared = files.flatMap((file) => {
    const list: { node: ts.ClassDeclaration; constants: Map<string, ts.Expression> }[] = []
    const constants = constantsOf(file)
    walk(file, (node) => ts.isClassDeclaration(node) && list.push({ node, constants }))
    return list
  })
  // A class may be declared after those that extend it.
  for (let known = 0; known !== found.size;) {
    known = found.size
    for (const { node, constants } of declared) {
      const parent =
        node.heritageClauses?.flatMap(({ types }) => types.map(({ expression }) => expression.getText()))[0] ?? ''
      const inherited = found.get(parent)
      const name = node.name?.text
      if (inherited === undefined || name === undefined || found.has(name)) continue
      found.set(name, constructed(name, node, inherited, constants))
    }
  }
  return found
}

function constructed(
  name: string,
  node: ts.ClassDeclaration,
  inherited: Constructed,
  constants: Map<string, ts.Expression>,
): Constructed {
  const constructor = node.members.find(ts.isConstructorDeclaration)
  const codes = (parameters: readonly string[]): Text[] =>
    parameters.includes('code') ? [[{ name: 'code', parameter: true }]] : [[name]]
  if (constructor === undefined)
    return { ...inherited, template: { ...inherited.template, codes: codes(inherited.parameters) } }
  const parameters = parametersOf(constructor)
  let messages: readonly Text[] = [[name]]
  walk(constructor, (inner) => {
    if (!ts.isCallExpression(inner) || inner.expression.kind !== ts.SyntaxKind.SuperKeyword) return
    messages = fill(inherited.template, inherited.parameters, inner.arguments, scopeOf(inner, constants)).messages
  })
  return { parameters, template: { codes: codes(parameters), messages } }
}

/** An object with `message` and `code`, or with `message` and the members of another that has them. */
function objectTemplate(node: ts.ObjectLiteralExpression, scope: Scope): Template | undefined {
  const value = (name: string) =>
    node.properties.find((one) => ts.isPropertyAssignment(one) && one.name.getText() === name) as
      ts.PropertyAssignment | undefined
  const message = value('message')
  const code = value('code')
  const spread = node.properties.find(ts.isSpreadAssignment)
  if (message === undefined || (code === undefined && spread === undefined)) return undefined
  const codes =
    code === undefined
      ? spread === undefined
        ? []
        : textsOf(spread.expression, scope)
      : textsOf(code.initializer, scope)
  return { codes, messages: textsOf(message.initializer, scope) }
}

/** The statuses of a catalogue: `CODE: { status: 400, … }`, or objects with `status`, or a spread one that has it, and `code`. */
function statusesOf(file: ts.SourceFile): [string, string][] {
  const found: [string, string][] = []
  const constants = constantsOf(file)
  const memberOf = (object: ts.ObjectLiteralExpression, name: string): ts.Expression | undefined => {
    for (const member of object.properties) {
      if (ts.isPropertyAssignment(member) && member.name.getText() === name) return member.initializer
      if (!ts.isSpreadAssignment(member) || !ts.isIdentifier(member.expression)) continue
      const constant = constants.get(member.expression.text)
      const object = constant !== undefined && ts.isAsExpression(constant) ? constant.expression : constant
      const spread = object !== undefined && ts.isObjectLiteralExpression(object) ? memberOf(object, name) : undefined
      if (spread !== undefined) return spread
    }
    return undefined
  }
  walk(file, (node) => {
    if (!ts.isObjectLiteralExpression(node)) return
    const status = memberOf(node, 'status')
    const code = memberOf(node, 'code')
    if (status === undefined || !ts.isNumericLiteral(status)) return
    if (code !== undefined && ts.isStringLiteralLike(code)) found.push([code.text, status.text])
    else if (ts.isPropertyAssignment(node.parent)) found.push([node.parent.name.getText(), status.text])
  })
  return found
}

/** The name under which another file exports what `name` is here, and which file that is. */
function importOf(file: ts.SourceFile, name: string): { name: string; matches: (file: string) => boolean } | undefined {
  for (const statement of file.statements) {
    if (!ts.isImportDeclaration(statement) || !ts.isStringLiteral(statement.moduleSpecifier)) continue
    const bindings = statement.importClause?.namedBindings
    if (bindings === undefined || !ts.isNamedImports(bindings)) continue
    const element = bindings.elements.find((one) => one.name.text === name)
    if (element === undefined) continue
    const path = statement.moduleSpecifier.text
    const ending = path.replace(/^(?:\.{1,2}\/)+/, '')
    // A folder's index exports what is declared in its other files.
    const isIndex = ending.endsWith('index.ts') || !ending.endsWith('.ts')
    return {
      name: (element.propertyName ?? element.name).text,
      matches: (other) => isIndex || other.endsWith(`/${ending}`),
    }
  }
  return undefined
}

function scopeOf(node: ts.Node, constants: Map<string, ts.Expression>): Scope {
  return {
    isParameter: (name) => {
      for (let at: ts.Node | undefined = node; at !== undefined; at = at.parent as ts.Node | undefined) {
        if (isFunction(at) && parametersOf(at).includes(name))
          return functionName(at) !== undefined || ts.isConstructorDeclaration(at)
      }
      return false
    },
    constant: (name) => constants.get(name),
  }
}

/** The nearest named function around. */
function ownerOf(node: ts.Node): FunctionNode | undefined {
  for (let at: ts.Node | undefined = node; at !== undefined; at = at.parent as ts.Node | undefined) {
    if (isFunction(at) && (functionName(at) !== undefined || ts.isConstructorDeclaration(at))) return at
  }
  return undefined
}

function isFunction(node: ts.Node): node is FunctionNode {
  return (
    ts.isFunctionDeclaration(node) ||
    ts.isArrowFunction(node) ||
    ts.isFunctionExpression(node) ||
    ts.isMethodDeclaration(node) ||
    ts.isConstructorDeclaration(node)
  )
}

function functionName(node: FunctionNode): string | undefined {
  if (ts.isConstructorDeclaration(node)) return undefined
  if (node.name !== undefined) return node.name.getText()
  const { parent } = node
  return ts.isVariableDeclaration(parent) || ts.isPropertyAssignment(parent) ? parent.name.getText() : undefined
}

function parametersOf(node: FunctionNode): string[] {
  return node.parameters.map(({ name }) => (ts.isIdentifier(name) ? name.text : ''))
}

function constantsOf(file: ts.SourceFile): Map<string, ts.Expression> {
  const found = new Map<string, ts.Expression>()
  walk(file, (node) => {
    if (ts.isVariableDeclaration(node) && ts.isIdentifier(node.name) && node.initializer !== undefined) {
      if ((node.parent.flags & ts.NodeFlags.Const) !== 0) found.set(node.name.text, node.initializer)
    }
  })
  return found
}

function walk(node: ts.Node, visit: (node: ts.Node) => unknown): void {
  visit(node)
  ts.forEachChild(node, (child) => walk(child, visit))
}
