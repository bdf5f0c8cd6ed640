import ts from 'typescript'

/** One change of the code that a test should notice. */
export interface Mutant {
  readonly id: number
  /** From the root of the tree. */
  readonly file: string
  readonly line: number
  readonly operator: Operator
  readonly original: string
  readonly replacement: string
  /** Whether it is about a comparison or arithmetic: of its operator, or of its outcome. */
  readonly figures: boolean
}

/** Named as Stryker names them. */
export type Operator =
  | 'ArithmeticOperator'
  | 'AssignmentOperator'
  | 'BlockStatement'
  | 'ConditionalExpression'
  | 'EqualityOperator'
  | 'LogicalOperator'
  | 'MethodExpression'
  | 'UnaryOperator'
  | 'UpdateOperator'

/** Comparisons and arithmetic. */
const FIGURING: ReadonlySet<Operator> = new Set(['ArithmeticOperator', 'AssignmentOperator', 'EqualityOperator', 'UpdateOperator'])

const { SyntaxKind, factory } = ts

const BINARY: ReadonlyMap<ts.SyntaxKind, readonly [Operator, readonly ts.BinaryOperator[]]> = new Map([
  [SyntaxKind.LessThanToken, ['EqualityOperator', [SyntaxKind.LessThanEqualsToken, SyntaxKind.GreaterThanEqualsToken]]],
  [SyntaxKind.LessThanEqualsToken, ['EqualityOperator', [SyntaxKind.LessThanToken, SyntaxKind.GreaterThanToken]]],
  [SyntaxKind.GreaterThanToken, ['EqualityOperator', [SyntaxKind.GreaterThanEqualsToken, SyntaxKind.LessThanEqualsToken]]],
  [SyntaxKind.GreaterThanEqualsToken, ['EqualityOperator', [SyntaxKind.GreaterThanToken, SyntaxKind.LessThanToken]]],
  [SyntaxKind.EqualsEqualsEqualsToken, ['EqualityOperator', [SyntaxKind.ExclamationEqualsEqualsToken]]],
  [SyntaxKind.ExclamationEqualsEqualsToken, ['EqualityOperator', [SyntaxKind.EqualsEqualsEqualsToken]]],
  [SyntaxKind.PlusToken, ['ArithmeticOperator', [SyntaxKind.MinusToken]]],
  [SyntaxKind.MinusToken, ['ArithmeticOperator', [SyntaxKind.PlusToken]]],
  [SyntaxKind.AsteriskToken, ['ArithmeticOperator', [SyntaxKind.SlashToken]]],
  [SyntaxKind.SlashToken, ['ArithmeticOperator', [SyntaxKind.AsteriskToken]]],
  [SyntaxKind.PercentToken, ['ArithmeticOperator', [SyntaxKind.AsteriskToken]]],
  [SyntaxKind.AsteriskAsteriskToken, ['ArithmeticOperator', [SyntaxKind.AsteriskToken]]],
  [SyntaxKind.AmpersandAmpersandToken, ['LogicalOperator', [SyntaxKind.BarBarToken]]],
  [SyntaxKind.BarBarToken, ['LogicalOperator', [SyntaxKind.AmpersandAmpersandToken]]],
  [SyntaxKind.QuestionQuestionToken, ['LogicalOperator', [SyntaxKind.AmpersandAmpersandToken]]],
  [SyntaxKind.PlusEqualsToken, ['AssignmentOperator', [SyntaxKind.MinusEqualsToken]]],
  [SyntaxKind.MinusEqualsToken, ['AssignmentOperator', [SyntaxKind.PlusEqualsToken]]],
  [SyntaxKind.QuestionQuestionEqualsToken, ['AssignmentOperator', [SyntaxKind.AmpersandAmpersandEqualsToken]]],
])
const METHODS: Readonly<Record<string, string>> = { min: 'max', max: 'min', ceil: 'floor', floor: 'ceil', some: 'every', every: 'some' }

/** A file's code as JavaScript in which every mutant waits to be switched on: `globalThis.mutation(id)` says whether it is. */
export function instrument(file: string, source: string, firstId: number): { readonly code: string; readonly mutants: readonly Mutant[] } {
  const mutants: Mutant[] = []
  const transform: ts.TransformerFactory<ts.SourceFile> = transformation => root => {
    const printer = ts.createPrinter({ removeComments: true })
    const print = (node: ts.Node) => printer.printNode(ts.EmitHint.Unspecified, node, root).replaceAll(/\s+/g, ' ')
    const on = (node: ts.Node, operator: Operator, original: string, replacement: string): ts.Expression => {
      const id = firstId + mutants.length
      const line = root.getLineAndCharacterOfPosition(node.getStart(root)).line + 1
      const figures = FIGURING.has(operator) || (operator === 'ConditionalExpression' && isComparison(node))
      mutants.push({ id, file, line, operator, original, replacement, figures })
      const mutation = factory.createPropertyAccessExpression(factory.createIdentifier('globalThis'), 'mutation')
      return factory.createCallChain(mutation, factory.createToken(SyntaxKind.QuestionDotToken), undefined, [
        factory.createNumericLiteral(id),
      ])
    }
    /** The expression, or one of its variants. What is inside of it is mutated in itself alone. */
    const choice = (
      node: ts.Expression,
      inner: ts.Expression,
      variants: readonly (readonly [Operator, ts.Expression])[],
    ): ts.Expression => {
      let whole = inner
      for (const [operator, variant] of variants) {
        whole = factory.createParenthesizedExpression(
          factory.createConditionalExpression(on(node, operator, print(node), print(variant)), undefined, variant, undefined, whole),
        )
      }
      return whole
    }
    const visit = (node: ts.Node, inFunction: boolean): ts.Node => {
      if (ts.isTypeNode(node) || ts.isTypeAliasDeclaration(node) || ts.isInterfaceDeclaration(node)) return node
      const inside = inFunction || ts.isFunctionLike(node) || ts.isPropertyDeclaration(node)
      const inner = ts.visitEachChild(node, child => visit(child, inside), transformation)
      if (!inFunction) return ts.isBlock(node) ? emptied(node, inner as ts.Block) : inner
      if (ts.isBlock(node)) return emptied(node, inner as ts.Block)
      return ts.isExpression(node) ? choice(node, inner as ts.Expression, variantsOf(node)) : inner
    }
    const emptied = (node: ts.Block, inner: ts.Block): ts.Block => {
      if (node.statements.length === 0 || ts.isConstructorDeclaration(node.parent)) return inner
      const condition = on(node, 'BlockStatement', `${print(node).slice(0, 60)}…`, '{}')
      return factory.createBlock(
        [factory.createIfStatement(factory.createLogicalNot(factory.createParenthesizedExpression(condition)), inner)],
        true,
      )
    }
    return ts.visitEachChild(root, node => visit(node, false), transformation)
  }
  const { outputText } = ts.transpileModule(source, {
    fileName: file,
    compilerOptions: { target: ts.ScriptTarget.ES2023, module: ts.ModuleKind.ESNext, verbatimModuleSyntax: true },
    transformers: { before: [transform] },
  })
  return { code: outputText, mutants }
}

function variantsOf(node: ts.Expression): (readonly [Operator, ts.Expression])[] {
  const found: (readonly [Operator, ts.Expression])[] = []
  if (ts.isBinaryExpression(node)) {
    const { left, operatorToken, right } = node
    const [operator, others] = BINARY.get(operatorToken.kind) ?? []
    if (operator !== undefined && others !== undefined && !(operator !== 'LogicalOperator' && (isText(left) || isText(right)))) {
      for (const other of others) found.push([operator, factory.createBinaryExpression(bracketed(left), other, bracketed(right))])
    }
  } else if (
    ts.isPrefixUnaryExpression(node) &&
    (node.operator === SyntaxKind.MinusToken || node.operator === SyntaxKind.ExclamationToken)
  ) {
    if (!ts.isNumericLiteral(node.operand) && !ts.isBigIntLiteral(node.operand)) found.push(['UnaryOperator', node.operand])
  } else if (ts.isPrefixUnaryExpression(node) && node.operator === SyntaxKind.PlusPlusToken) {
    found.push(['UpdateOperator', factory.createPrefixDecrement(node.operand)])
  } else if (ts.isPostfixUnaryExpression(node)) {
    const other = node.operator === SyntaxKind.PlusPlusToken ? SyntaxKind.MinusMinusToken : SyntaxKind.PlusPlusToken
    found.push(['UpdateOperator', factory.createPostfixUnaryExpression(node.operand, other)])
  } else if (ts.isCallExpression(node) && ts.isPropertyAccessExpression(node.expression)) {
    const { expression, name } = node.expression
    const other = METHODS[name.text]
    if (other !== undefined)
      found.push([
        'MethodExpression',
        factory.createCallExpression(factory.createPropertyAccessExpression(expression, other), undefined, node.arguments),
      ])
  }
  if (isCondition(node)) {
    if (!isLoop(node.parent)) found.push(['ConditionalExpression', factory.createTrue()])
    found.push(['ConditionalExpression', factory.createFalse()])
  }
  return found
}

/** What decides, and what compares wherever it stands. */
function isCondition(node: ts.Expression): boolean {
  const { parent } = node
  if (node.kind === SyntaxKind.TrueKeyword || node.kind === SyntaxKind.FalseKeyword) return false
  if ((ts.isIfStatement(parent) || isLoop(parent)) && 'expression' in parent && parent.expression === node) return true
  if (ts.isForStatement(parent) && parent.condition === node) return true
  if (ts.isConditionalExpression(parent) && parent.condition === node) return true
  if (!ts.isBinaryExpression(node)) return false
  const [operator] = BINARY.get(node.operatorToken.kind) ?? []
  return (
    operator === 'EqualityOperator' ||
    node.operatorToken.kind === SyntaxKind.AmpersandAmpersandToken ||
    node.operatorToken.kind === SyntaxKind.BarBarToken
  )
}

function isComparison(node: ts.Node): boolean {
  return ts.isBinaryExpression(node) && BINARY.get(node.operatorToken.kind)?.[0] === 'EqualityOperator'
}

function isLoop(node: ts.Node): boolean {
  return ts.isForStatement(node) || ts.isWhileStatement(node) || ts.isDoStatement(node)
}

function isText(node: ts.Expression): boolean {
  return ts.isStringLiteralLike(node) || ts.isTemplateExpression(node)
}

function bracketed(node: ts.Expression): ts.Expression {
  return ts.isBinaryExpression(node) || ts.isConditionalExpression(node) ? factory.createParenthesizedExpression(node) : node
}
