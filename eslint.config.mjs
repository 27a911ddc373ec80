import js from '@eslint/js';
import importSort from 'eslint-plugin-simple-import-sort';
import tsdoc from 'eslint-plugin-tsdoc';
import typescript from 'typescript-eslint';

import portico from './tools/lint/rules.mjs';

// What a reviewer would otherwise have to say twice. Prettier formats; nothing here speaks of layout.
// The rules that need types are in .oxlintrc.json: oxlint checks them in a fifth of the time, with the native compiler.

const TYPESCRIPT = ['**/*.ts', '**/*.tsx'];
const SOURCES = [
    'core/src/**/*.ts',
    'sdk/src/**/*.ts',
    'sdk/testing/src/**/*.ts',
    'sdk/agents/src/**/*.ts',
    'registry/src/**/*.ts',
    'extensions/*/src/**/*.ts'
];
const TESTS = ['test/**/*.ts'];
const BROWSER = ['extensions/*/web/**/*.{ts,tsx}', 'sdk/page-kit/src/**/*.ts'];

// A shell between us and a program turns data into code; execFile and spawn with a list of arguments do not.
const CHILDREN = {
    paths: [
        {
            name: 'node:child_process',
            importNames: ['exec', 'execSync'],
            message: 'A shell turns data into code: use execFile or spawn with a list of arguments.'
        },
        {
            name: 'child_process',
            message: 'Write node:child_process.'
        }
    ]
};
// A name that a user typed may mean the machine's own services: only one client connects, and it checks the address first.
const CONNECTIONS = {
    'node:http': ['request', 'get', 'Agent', 'globalAgent', 'ClientRequest'],
    'node:https': ['request', 'get', 'Agent', 'globalAgent'],
    'node:http2': ['connect'],
    'node:net': ['connect', 'createConnection'],
    'node:tls': ['connect'],
    'node:dgram': ['createSocket']
};
const OUTBOUND = {
    paths: [
        ...CHILDREN.paths,
        ...Object.entries(CONNECTIONS).map(([name, importNames]) => ({
            name,
            importNames: ['default', ...importNames],
            message:
                'Connections to the outside go through core/src/platform/outbound, which refuses private addresses; features take it from panel.ts.'
        })),
        ...['http', 'https', 'http2', 'net', 'tls', 'dgram'].map((name) => ({
            name,
            message: `Write node:${name}.`
        }))
    ]
};
const SHELL = {
    selector: 'Property[key.name="shell"]:not([value.value=false])',
    message: 'A shell turns data into code: give spawn a list of arguments and no shell.'
};
const CONTINUED_TESTS = [
    {
        selector:
            'MemberExpression[object.name=/^(it|test|describe|experiment|lab)$/][property.name=/^(only|skip)$/]',
        message:
            '`only` hides every other test and `skip` this one: a test that cannot run here says why, see docs/contributing.md.'
    }
];

// Node's modules, packages, our own files.
const IMPORT_GROUPS = [['^node:'], ['^@?\\w'], ['^\\.']];

// A leading underscore says: named on purpose, not used.
const UNUSED = {
    argsIgnorePattern: '^_',
    varsIgnorePattern: '^_',
    destructuredArrayIgnorePattern: '^_',
    caughtErrors: 'none'
};

// What docs/glossary.md replaces, in names …
const REFUSED_NAMES = {
    door: 'route kind, plugin slot or API',
    doors: 'route kinds, plugin slots or API',
    journey: 'start',
    road: 'start ports',
    settle: 'reconcile',
    fall: 'mark failed',
    falls: 'quarantine',
    boots: 'crash loop',
    blame: 'error owner',
    survey: 'inventory',
    'way-back': 'rollback source',
    turns: 'Mutex or KeyedMutex',
    keeper: 'engine state',
    works: 'engine context',
    sketch: 'draft',
    bring: 'sync',
    doubt: 'invalidate',
    building: 'plugin generation',
    realm: 'guest runtime',
    prover: 'plugin settings',
    leftovers: 'leaks',
    uses: 'usage log',
    desk: 'admin',
    fate: 'describe',
    serving: 'proxy, served state or hosts service',
    transfer: 'export section'
};
// … and in comments, messages and titles of tests. test/docs/links.ts refuses the same words in the pages.
const REFUSED_PROSE = ['somebody', 'nobody', 'anybody', 'everybody', 'whoever', 'whomever'];

export default typescript.config(
    {
        ignores: [
            '**/dist/',
            '**/node_modules/',
            'core/.bundle/',
            'extensions/webui/pages/',
            'extensions/*/assets/',
            'test/fixtures/',
            'data/'
        ]
    },
    { linterOptions: { reportUnusedDisableDirectives: 'error' } },
    js.configs.recommended,
    {
        plugins: { portico, 'simple-import-sort': importSort },
        rules: {
            'portico/explained-disable': 'error',
            'no-duplicate-imports': 'error',
            'simple-import-sort/imports': ['error', { groups: IMPORT_GROUPS }],
            eqeqeq: ['error', 'always', { null: 'ignore' }],
            'no-var': 'error',
            // A closure may need a name before the value that it stands for can be made.
            'prefer-const': ['error', { ignoreReadBeforeAssign: true }],
            'object-shorthand': 'error',
            'no-restricted-imports': ['error', CHILDREN],
            'no-restricted-syntax': ['error', SHELL],
            'no-unused-vars': ['error', UNUSED],
            'no-control-regex': 'off' // hostile bytes are exactly what validators look for
        }
    },
    {
        files: TYPESCRIPT,
        extends: [typescript.configs.recommended],
        plugins: { tsdoc },
        rules: {
            'tsdoc/syntax': 'error',
            'no-undef': 'off', // tsc knows better

            '@typescript-eslint/no-import-type-side-effects': 'error',
            '@typescript-eslint/consistent-type-imports': [
                'error',
                { fixStyle: 'inline-type-imports', disallowTypeAnnotations: false }
            ],
            '@typescript-eslint/no-unused-vars': ['error', UNUSED],
            'portico/name-form': 'error',
            '@typescript-eslint/ban-ts-comment': [
                'error',
                { 'ts-expect-error': 'allow-with-description', 'ts-ignore': true, 'ts-nocheck': true }
            ],
            '@typescript-eslint/no-empty-object-type': ['error', { allowInterfaces: 'always' }]
        }
    },
    {
        files: SOURCES,
        rules: {
            'no-console': 'error',
            // Outbound requests go through one client that refuses private addresses.
            'no-restricted-globals': [
                'error',
                {
                    name: 'fetch',
                    message:
                        "Outbound requests go through the core's own client, which guards against private addresses."
                },
                { name: 'WebSocket', message: 'It connects without a look at the address.' },
                { name: 'EventSource', message: 'It connects without a look at the address.' }
            ],
            'no-restricted-imports': ['error', OUTBOUND],
            'max-lines': ['error', { max: 400 }],
            'max-lines-per-function': ['error', { max: 80, skipBlankLines: true, skipComments: true }],
            'portico/documented-export': 'error',
            'portico/explained-cast': 'error',
            'portico/glossary': ['error', REFUSED_NAMES, REFUSED_PROSE]
        }
    },
    {
        // The client itself, the engine's admin socket, probes of this machine's own listeners, and questions to name servers, which may well be private.
        files: [
            'core/src/platform/outbound/*.ts',
            'core/src/engine/caddy/admin.ts',
            'core/src/engine/probe.ts',
            'core/src/engine/caddy/listeners.ts',
            'core/src/features/hosts/checks/probe.ts',
            'core/src/features/certificates/placement/served.ts',
            'core/src/features/dns-providers/rfc2136/dns-client.ts'
        ],
        rules: { 'no-restricted-imports': ['error', CHILDREN] }
    },
    {
        files: BROWSER,
        rules: {
            'max-lines': ['error', { max: 400 }],
            'max-lines-per-function': ['error', { max: 80, skipBlankLines: true, skipComments: true }],
            'portico/documented-export': 'error',
            'portico/explained-cast': 'error',
            'portico/glossary': ['error', REFUSED_NAMES, REFUSED_PROSE],
            // Components are functions with the name of a type.
            'no-restricted-syntax': [
                'error',
                {
                    selector: 'JSXAttribute[name.name="dangerouslySetInnerHTML"]',
                    message: 'Text of the server and of plugins is shown as text.'
                },
                {
                    selector: 'MemberExpression[property.name=/^(innerHTML|outerHTML)$/]',
                    message: 'Text of the server and of plugins is shown as text.'
                }
            ]
        }
    },
    {
        // Absent on plain HTTP, where the panel is first opened: `web/src/browser` has the way round.
        files: BROWSER,
        ignores: ['extensions/webui/web/src/browser/*.ts'],
        rules: {
            'no-restricted-properties': [
                'error',
                ...[
                    ['crypto', 'subtle'],
                    ['crypto', 'randomUUID'],
                    ['navigator', 'clipboard'],
                    ['navigator', 'locks'],
                    ['navigator', 'serviceWorker']
                ].map(([object, property]) => ({
                    object,
                    property,
                    message: 'It is absent on plain HTTP: see web/src/browser.'
                }))
            ]
        }
    },
    // Types of other packages' exports: their documentation is those packages'.
    { files: ['**/*.d.ts'], rules: { 'portico/documented-export': 'off' } },
    {
        // The client of the test kit asks the panel that the kit itself has just started on this machine.
        files: ['sdk/testing/src/client/client.ts', 'sdk/testing/src/client/socket.ts'],
        rules: { 'no-restricted-globals': 'off' }
    },
    { files: ['core/src/main.ts', 'core/src/cli/**/*.ts'], rules: { 'no-console': 'off' } },
    {
        files: TESTS,
        rules: {
            'no-restricted-syntax': ['error', SHELL, ...CONTINUED_TESTS],
            'portico/explained-cast': 'error',
            'portico/glossary': ['error', {}, REFUSED_PROSE, 'titles'],
            '@typescript-eslint/no-unused-expressions': 'off' // expect(x).to.be.true is a call in other assertion libraries
        }
    },
    {
        files: ['**/*.{js,mjs,cjs}'],
        languageOptions: {
            globals: {
                process: 'readonly',
                console: 'readonly',
                Buffer: 'readonly',
                setTimeout: 'readonly',
                clearTimeout: 'readonly',
                URL: 'readonly'
            }
        }
    },
    { files: ['docs/**/*.mjs'], languageOptions: { globals: { fetch: 'readonly' } } },
    {
        files: ['**/*.cjs'],
        languageOptions: {
            sourceType: 'commonjs',
            globals: { module: 'writable', require: 'readonly', __dirname: 'readonly' }
        }
    }
);
