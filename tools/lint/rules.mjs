// The house's own lint rules: what a reviewer would otherwise have to say again and again. docs/contributing.md explains them.

/** A disabled rule says beside it why: `// eslint-disable-next-line rule -- the reason`. */
const explainedDisable = {
    meta: {
        type: 'problem',
        schema: [],
        messages: { reason: 'Say why the rule does not hold here: `-- the reason`.' }
    },
    create: (context) => ({
        Program() {
            for (const comment of context.sourceCode.getAllComments()) {
                if (/^\s*eslint-disable/.test(comment.value) && !/\s--\s+\S/.test(comment.value)) {
                    context.report({ loc: comment.loc, messageId: 'reason' });
                }
            }
        }
    })
};

/** `as never`, and two casts one after the other (`as unknown as`), switch the compiler off: a comment on the same line, or on the one above the statement, says why. */
const explainedCast = {
    meta: {
        type: 'problem',
        schema: [],
        messages: {
            reason: 'This cast switches the compiler off: type the seam, or say why in a comment on this line or above the statement.'
        }
    },
    create: (context) => {
        const { sourceCode } = context;
        const reasons = sourceCode
            .getAllComments()
            .filter(({ type, value }) => type === 'Line' || !value.startsWith('*'));
        // A comment behind code speaks of that code, and not of the line below.
        const standsAlone = (comment) =>
            sourceCode.getTokenBefore(comment)?.loc.end.line !== comment.loc.start.line;
        const beside = new Set(reasons.flatMap(({ loc }) => [loc.start.line, loc.end.line]));
        const above = new Set(reasons.filter(standsAlone).map(({ loc }) => loc.end.line + 1));
        const statementOf = (node) =>
            /(Statement|Declaration|Definition)$/.test(node.type) ? node : statementOf(node.parent);
        return {
            TSAsExpression(node) {
                const never = node.typeAnnotation.type === 'TSNeverKeyword';
                const twice = node.expression.type === 'TSAsExpression';
                const { start, end } = node.loc;
                const isExplained =
                    [start.line, end.line].some((line) => beside.has(line)) ||
                    [start.line, statementOf(node).loc.start.line].some((line) => above.has(line));
                if ((never || twice) && !isExplained) {
                    context.report({ node, messageId: 'reason' });
                }
            }
        };
    }
};

/** A sentence with a subject and a verb has at least so many words. */
const fewestWords = 4;
const wordsOf = (text) => text.split(/[\s*]+/).filter((word) => /[\p{L}\p{N}]/u.test(word));

/** Everything that a file exports has a doc comment, which says more than the name: a sentence, and not two words. */
const documentedExport = {
    meta: {
        type: 'suggestion',
        schema: [],
        messages: {
            missing: '{{name}} is exported: say in `/** … */` what it is.',
            short: 'Say in a sentence what {{name}} is: its shape, its unit, its limit, or what a reader cannot see from the name.'
        }
    },
    create: (context) => ({
        'ExportNamedDeclaration[declaration], ExportDefaultDeclaration'(node) {
            const { declaration } = node;
            const before = context.sourceCode.getCommentsBefore(node).at(-1);
            const name =
                declaration.id?.name ?? declaration.declarations?.[0]?.id.name ?? 'The default export';
            if (
                before?.type === 'Block' &&
                before.value.startsWith('*') &&
                before.loc.end.line >= node.loc.start.line - 1
            ) {
                if (wordsOf(before.value).length < fewestWords) {
                    context.report({ loc: before.loc, messageId: 'short', data: { name } });
                }
                return;
            }
            // Overloads of one function share the comment of the first.
            const position = context.sourceCode.ast.body.indexOf(node);
            const previous = context.sourceCode.ast.body[position - 1]?.declaration;
            if (previous?.type === 'TSDeclareFunction' && previous.id?.name === name) {
                return;
            }
            context.report({ node: declaration.id ?? node, messageId: 'missing', data: { name } });
        }
    })
};

const DECLARED_NAMES = [
    ':matches(VariableDeclarator, FunctionDeclaration, ClassDeclaration, TSInterfaceDeclaration, TSTypeAliasDeclaration) > Identifier.id',
    ':matches(MethodDefinition, PropertyDefinition, TSPropertySignature, TSMethodSignature) > :matches(Identifier, PrivateIdentifier).key',
    ':function > Identifier.params'
].join(', ');

const MODULE_CONSTANTS = ['Program >', 'Program > ExportNamedDeclaration >']
    .map((place) => `${place} VariableDeclaration[kind="const"] > VariableDeclarator > Identifier.id`)
    .join(', ');

/** The forms of names. The rule of typescript-eslint for them takes a third of the time of all rules. */
const nameForm = {
    meta: {
        type: 'suggestion',
        schema: [],
        messages: {
            constant: '`{{name}}` is a constant of a module: write it as camelCase, or as PascalCase.',
            interface: '`{{name}}` is an interface: write it as PascalCase, without an I in front.'
        }
    },
    create: (context) => {
        const check = (form, messageId) => (node) => {
            if (!form.test(node.name)) {
                context.report({ node, messageId, data: { name: node.name } });
            }
        };
        return {
            [MODULE_CONSTANTS]: check(/^(?:[a-z][^_]*|(?:[A-Z][a-z0-9]+)*[A-Z]?)$/, 'constant'),
            'TSInterfaceDeclaration > Identifier.id': check(/^(?!I[A-Z])[A-Z][^_]*$/, 'interface')
        };
    }
};

const partsOf = (name) => name.split(/(?<=[a-z0-9])(?=[A-Z])|_|-/).map((part) => part.toLowerCase());

const isTitle = ({ parent }) => {
    const { callee, arguments: given } = parent.type === 'TemplateLiteral' ? parent.parent : parent;
    return given !== undefined && /^(describe|experiment|it|test)$/.test(callee.name ?? '');
};

/**
 * Names use the words of docs/glossary.md, and prose names who acts. Options: a word of a name that is refused → what to use; words that
 * prose does without; which texts in quotes are prose: `messages`, every text with a space in it, or `titles`, those of tests. What a comment
 * has in backticks is a name, and not prose.
 */
const glossary = {
    meta: {
        type: 'suggestion',
        schema: [
            { type: 'object', additionalProperties: { type: 'string' } },
            { type: 'array', items: { type: 'string' } },
            { enum: ['messages', 'titles'] }
        ],
        messages: {
            name: '`{{name}}` uses a word that docs/glossary.md replaces: use {{instead}}.',
            prose: 'Say who acts (the actor, the caller, the admin, the plugin) in place of `{{word}}`.'
        }
    },
    create: (context) => {
        const [names = {}, prose = [], quoted = 'messages'] = context.options;
        const refused = Object.entries(names).map(([word, instead]) => ({ wanted: partsOf(word), instead }));
        const refusedProse = new RegExp(`\\b(${prose.join('|')})\\b`, 'i');

        const checkName = (node, name) => {
            const parts = partsOf(name);
            const holds = (wanted) =>
                parts.some((_, at) => wanted.every((part, offset) => parts[at + offset] === part));
            const found = refused.find(({ wanted }) => holds(wanted));
            if (found !== undefined) {
                context.report({ node, messageId: 'name', data: { name, instead: found.instead } });
            }
        };
        const checkProse = (loc, text) => {
            const word =
                prose.length === 0 ? undefined : refusedProse.exec(text.replace(/`[^`]*`/g, ''))?.[0];
            if (word !== undefined) {
                context.report({ loc, messageId: 'prose', data: { word } });
            }
        };
        const checkQuoted = (node, text) => {
            if (/\S\s+\S/.test(text) && (quoted === 'messages' || isTitle(node))) {
                checkProse(node.loc, text);
            }
        };

        return {
            Program(node) {
                checkName(
                    node,
                    context.filename
                        .split('/')
                        .at(-1)
                        .replace(/\.\w+$/, '')
                );
                context.sourceCode.getAllComments().forEach(({ loc, value }) => checkProse(loc, value));
            },
            [DECLARED_NAMES]: (node) => checkName(node, node.name),
            Literal: (node) => typeof node.value === 'string' && checkQuoted(node, node.value),
            TemplateElement: (node) => checkQuoted(node, node.value.raw)
        };
    }
};

export default {
    rules: {
        'explained-disable': explainedDisable,
        'explained-cast': explainedCast,
        'documented-export': documentedExport,
        'name-form': nameForm,
        glossary
    }
};
