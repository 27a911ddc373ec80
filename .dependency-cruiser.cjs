'use strict';

// Who may import whom. Deny by default: what no row of the table allows is an error, and so is a folder without a row.

const FEATURE = 'core/src/features/([^/]+)/';
const ENTRIES = 'core/src/(?:bundled|main)\\.ts$|core/src/cli/portico\\.ts$';
// The entries of the SDK's package: for all, and for the core and the registry, which plug their ports into its boundary.
const SDK = 'sdk/src/(index|db)\\.ts$';
const SDK_INSIDE = 'sdk/src/(index|db|host|page/model)\\.ts$';
const OURS = '^(core|sdk|registry|extensions|test|tools)/';
// A package whose version differs from the root's lies in the workspace that wants it.
const PACKAGES = 'node_modules/';

// Each layer: where its files lie, what of ours it may import, and what to do instead of importing something else.
// `$1` is the first group of `files`. Packages from npm are the business of the undeclared-dependency check.
const LAYERS = [
    {
        name: 'sdk',
        files: '^sdk/(?!testing/|agents/|page-kit/)',
        may: ['sdk/(?!testing/|agents/|page-kit/)'],
        instead:
            'The SDK imports nothing of ours: declare an interface in sdk/src and let the core implement it.'
    },
    {
        name: 'sdk-testing',
        files: '^sdk/testing/',
        may: ['sdk/testing/', SDK_INSIDE, 'sdk/src/page/page\\.ts$', 'core/src/plugin-runtime\\.ts$'],
        instead:
            "The test kit knows the SDK and core/src/plugin-runtime.ts: what it needs of the panel's plugin runtime is exported there."
    },
    {
        name: 'sdk-page-kit',
        files: '^sdk/page-kit/',
        may: ['sdk/page-kit/'],
        instead:
            'The parts for pages run in a browser and know nothing of the panel: they import packages and their own folder.'
    },
    {
        name: 'sdk-agents',
        files: '^sdk/agents/',
        may: ['sdk/agents/', SDK],
        instead: 'What plugins for agents have in common stands on the SDK alone, as a plugin does.'
    },
    {
        name: 'core-plugin-runtime-entry',
        files: '^core/src/plugin-runtime\\.ts$',
        may: [
            'core/src/(platform|server|composition|plugins|services|features/(tasks|users|hosts/(input|rules)))/',
            'registry/src/index\\.ts$'
        ],
        instead: 'This file only hands parts of the panel to the test kit: define nothing here.'
    },
    {
        name: 'registry',
        files: '^registry/',
        may: ['registry/', SDK_INSIDE],
        instead:
            'The registry imports only @portico/sdk: take what you need from the core as a port, an interface declared here and handed over by core/src/plugins.'
    },
    {
        name: 'core-platform',
        files: '^core/src/platform/',
        may: ['core/src/platform/', SDK_INSIDE],
        instead:
            'The platform is what every room stands on, so it knows none of them: move the code into the room, or declare the interface that you need here.'
    },
    {
        name: 'core-http',
        files: '^core/src/server/http/',
        may: ['core/src/(platform|server/http)/', SDK_INSIDE],
        instead:
            'The server factory knows no feature: declare a port in core/src/server/http and let panel.ts hand the service over.'
    },
    {
        name: 'core-gateway',
        files: '^core/src/server/gateway/',
        may: ['core/src/(platform|server)/', SDK],
        instead:
            'The gateway knows paths and servers, no feature: declare a port in core/src/server/gateway and let panel.ts hand the service over.'
    },
    {
        name: 'core-engine',
        files: '^core/src/engine/(?!routes\\.ts)',
        may: ['core/src/(platform|engine)/', SDK],
        instead:
            'The engine knows sites, not hosts, users or requests: describe what you need in core/src/engine/port.ts or site.ts and let the feature translate.'
    },
    {
        name: 'core-engine-routes',
        files: '^core/src/engine/routes\\.ts$',
        may: ['core/src/(platform|engine|server/http)/', SDK],
        instead: "The engine's routes turn requests into calls of its service, and import nothing else."
    },
    {
        name: 'core-feature',
        files: `^${FEATURE}`,
        may: ['core/src/features/$1/', 'core/src/(platform|server/http|engine)/', SDK],
        instead:
            'A feature does not import another one: declare the small interface that you need in your own folder and let panel.ts hand the other service over.'
    },
    {
        name: 'core-services',
        files: '^core/src/services/(?!supervisor/)',
        may: ['core/src/(platform|services)/', SDK],
        instead:
            'Services are programs of an owner and a name: who the owner is, and what it may do, is decided by the caller.'
    },
    {
        name: 'core-services-supervisor',
        files: '^core/src/services/supervisor/',
        may: ['core/src/services/(supervisor/|port\\.ts$)', 'core/src/platform/process/'],
        instead:
            'The supervisor is a process of its own that must stay small: it loads nothing of the SDK, and of the core only what it names here.'
    },
    {
        name: 'core-plugin-runtime',
        files: '^core/src/plugins/runtime/',
        may: [
            'core/src/(platform|server|engine|services|plugins/runtime|features/tasks)/',
            SDK_INSIDE,
            'registry/src/index\\.ts$'
        ],
        instead:
            'The runtime of one generation knows neither records nor admins: declare the port that you need and let the manager or panel.ts hand the service over.'
    },
    {
        name: 'core-plugin-manager',
        files: '^core/src/plugins/manager/',
        may: [
            'core/src/(platform|server|engine|services|plugins)/',
            'core/src/features/tasks/',
            SDK_INSIDE,
            'registry/src/index\\.ts$'
        ],
        instead:
            'The manager decides what runs: declare the port that you need and let panel.ts hand the service over.'
    },
    {
        name: 'core-panel',
        files: '^core/src/(?:panel\\.ts$|composition/)',
        may: ['core/src/(?!cli/|main|run)', SDK_INSIDE, 'registry/src/index\\.ts$'],
        instead: 'The composition root builds services; it does not know the command line or tests.'
    },
    {
        name: 'core-main',
        files: '^core/src/(?:main|run)\\.ts$',
        may: ['core/src/[^/]+\\.ts$', 'core/src/platform/', SDK],
        instead: 'The entry reads the configuration and starts panel.ts: build services there.'
    },
    {
        name: 'core-bundled',
        files: '^core/src/bundled\\.ts$',
        may: ['core/src/main\\.ts$', 'registry/src/index\\.ts$'],
        instead: 'The entry of the bundle says where its SDK lies and starts main.ts.'
    },
    {
        name: 'core-cli',
        files: '^core/src/cli/',
        may: ['core/src/', SDK_INSIDE, 'registry/src/index\\.ts$'],
        instead: 'The command line uses the core, the registry and the SDK, nothing else of ours.'
    },
    {
        name: 'core-bin',
        files: '^core/(?!src/)',
        may: ['core/'],
        instead: 'What lies beside core/src imports nothing of another package.'
    },
    {
        name: 'extension-browser',
        files: '^extensions/([^/]+)/web/',
        may: ['extensions/$1/web/', 'sdk/page-kit/', 'sdk/src/page/'],
        instead:
            'Pages run in a browser and know the API alone: they import packages, @portico/page-kit, @portico/sdk/page and their own folder.'
    },
    {
        name: 'extension',
        files: '^extensions/([^/]+)/(?!web/)',
        may: ['extensions/$1/', SDK, 'sdk/agents/src/index\\.ts$', 'extensions/[^/]+/src/contract\\.ts$'],
        instead:
            'An extension imports only @portico/sdk and @portico/agents of ours, and of another extension only its contract, as a type: ask for what is missing in the SDK.'
    },
    {
        name: 'tools',
        files: '^tools/',
        may: ['tools/'],
        instead: 'The tools run before anything is installed or built: they import nothing of ours.'
    },
    {
        name: 'test',
        files: '^test/',
        may: ['core/', 'sdk/', 'registry/', 'extensions/', 'test/', 'tools/'],
        instead: 'Tests may import everything of ours.'
    }
];

const error = (name, comment, from, to) => ({ name, severity: 'error', comment, from, to });

// hapi's edge: where requests come in. Everything else speaks the core's own errors and types.
const EDGE = `^core/src/(server|plugins/runtime)/|^core/src/(plugins/manager/routes|engine)/routes\\.ts$|^${FEATURE}routes\\.ts$|^test/`;
const inOneOf = (patterns) => patterns.map((pattern) => `^${pattern}`);

module.exports = {
    forbidden: [
        ...LAYERS.map(({ name, files, may, instead }) =>
            error(name, instead, { path: files }, { path: OURS, pathNot: [...inOneOf(may), PACKAGES] })
        ),

        error(
            'extension-contract',
            "Another extension's contract is a type only: write `import type`.",
            { path: '^extensions/([^/]+)/' },
            { path: '^extensions/', pathNot: '^extensions/$1/', dependencyTypesNot: ['type-only'] }
        ),
        error(
            'hapi-at-the-edge',
            'hapi, Boom and JWT stay in server/, plugins/runtime/ and routes.ts, types included: throw an error of errors.ts, take a plain value.',
            { pathNot: EDGE },
            { path: 'node_modules/@hapi/(hapi|boom)/' }
        ),
        error(
            'engine-as-type',
            'A feature knows the engine by its types only: write `import type`, and take the engine from panel.ts.',
            { path: `^${FEATURE}` },
            { path: '^core/src/engine/', dependencyTypesNot: ['type-only'] }
        ),
        error(
            'entry-file',
            'Nothing imports an entry file: move what you need out of it.',
            { pathNot: '^test/|^core/src/bundled\\.ts$' },
            { path: `^(${ENTRIES})` }
        ), // the bundle's entry starts main.ts
        error(
            'no-cycle',
            'Two files that need each other are one, or a third is missing: move what both need into a file of its own.',
            {},
            { circular: true }
        ),

        // A new folder or package gets a row in the table above before it gets code.
        ...['from', 'to'].map((side) =>
            error(
                `no-row-${side}`,
                'This file lies where no row of .dependency-cruiser.cjs speaks of: move it, or add a row that says what it may import.',
                ...sided(side, { path: OURS, pathNot: [...LAYERS.map((layer) => layer.files), PACKAGES] })
            )
        ),
        error(
            'no-row-orphan',
            'This file lies where no row of .dependency-cruiser.cjs speaks of: move it, or add a row that says what it may import.',
            { orphan: true, path: OURS, pathNot: [...LAYERS.map((layer) => layer.files), PACKAGES] },
            {}
        ),
        error(
            'unresolved',
            'This import leads nowhere: correct its path, or declare the package.',
            {},
            { couldNotResolve: true }
        )
    ],
    options: {
        doNotFollow: { path: 'node_modules' },
        // Fixtures are broken on purpose; built files and dependencies are not ours to judge.
        exclude: { path: '(^|/)dist/|^core/\\.bundle/|^test/fixtures/|^extensions/[^/]+/assets/' },
        tsPreCompilationDeps: true,
        tsConfig: { fileName: 'tsconfig.json' },
        enhancedResolveOptions: {
            conditionNames: ['portico-source', 'import', 'node', 'types', 'default'],
            exportsFields: ['exports'],
            extensions: ['.ts', '.tsx', '.mjs', '.js', '.cjs', '.json', '.d.ts']
        }
    }
};

function sided(side, where) {
    return side === 'from' ? [where, {}] : [{}, where];
}
