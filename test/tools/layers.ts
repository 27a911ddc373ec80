import { execFile } from 'node:child_process';
import { appendFile, cp, mkdir, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

export const lab = Lab.script();
const { describe, it, before, after } = lab;

const root = resolve(import.meta.dirname, '../..');

// A small source tree that keeps the rules. The tests add lines that break a rule, and the checker must name each of them.
const cleanTree: Record<string, string> = {
    'package.json': '{ "type": "module", "workspaces": ["sdk", "registry"] }',
    'tsconfig.json':
        '{ "compilerOptions": { "module": "nodenext", "allowImportingTsExtensions": true, "noEmit": true } }',
    'sdk/package.json':
        '{ "name": "@portico/sdk", "type": "module", "exports": { ".": { "portico-source": "./src/index.ts", "default": "./dist/index.js" } } }',
    'sdk/src/index.ts': 'export const sdk = 1;',
    'sdk/testing/src/index.ts':
        "import { runtime } from '../../../core/src/plugin-runtime.ts';\nexport const kit = runtime;",
    'sdk/agents/src/index.ts': "import { sdk } from '@portico/sdk';\nexport const agents = sdk;",
    'core/src/plugin-runtime.ts': "export { errors as runtime } from './platform/errors.ts';",
    'registry/package.json':
        '{ "name": "@portico/registry", "type": "module", "exports": { ".": { "portico-source": "./src/index.ts", "default": "./dist/index.js" } } }',
    'registry/src/index.ts': "import { sdk } from '@portico/sdk';\nexport const registry = sdk;",
    'core/src/platform/errors.ts': "import { sdk } from '@portico/sdk';\nexport const errors = sdk;",
    'core/src/main.ts': "import { panel } from './panel.ts';\npanel();",
    'core/src/panel.ts':
        "import { hosts } from './features/hosts/service.ts';\nexport const panel = () => hosts;",
    'core/src/cli/portico.ts': "import { panel } from '../panel.ts';\npanel();",
    'core/src/platform/database/database.ts':
        "import { errors } from '../errors.ts';\nexport const database = errors;",
    'core/src/engine/port.ts':
        "import { errors } from '../platform/errors.ts';\nexport interface Engine { errors: typeof errors }",
    'core/src/engine/render/render.ts': 'export const render = 1;',
    'core/src/services/port.ts': 'export const port = 1;',
    'core/src/services/supervisor/main.ts': "import { port } from '../port.ts';\nexport const main = port;",
    'core/src/server/http/server.ts': "import { server } from '@hapi/hapi';\nexport const http = server;",
    'core/src/features/hosts/service.ts':
        "import { database } from '../../platform/database/database.ts';\nimport type { Engine } from '../../engine/port.ts';\nexport const hosts = (engine: Engine) => [engine, database];",
    'core/src/features/hosts/routes.ts':
        "import { server } from '@hapi/hapi';\nimport { http } from '../../server/http/server.ts';\nexport const routes = [server, http];",
    'core/src/features/users/service.ts': 'export const users = 1;',
    'extensions/hello/src/index.ts':
        "import { sdk } from '@portico/sdk';\nimport '../../../sdk/agents/src/index.ts';\nimport type { contract } from '../../other/src/contract.ts';\nexport type Both = [typeof sdk, typeof contract];",
    'extensions/other/src/contract.ts': 'export const contract = 1;',
    'extensions/other/src/service.ts': 'export const service = 1;',
    'tools/start.mjs': "import 'node:fs';",
    'test/users.ts':
        "import { users } from '../core/src/features/users/service.ts';\nimport '../core/src/main.ts';\nexport const lab = users;",
    'node_modules/@hapi/hapi/package.json':
        '{ "name": "@hapi/hapi", "version": "21.0.0", "main": "index.js" }',
    'node_modules/@hapi/hapi/index.js': 'exports.server = 1;'
};

// Each entry: the rule, the file that gets the lines, and the lines.
const plants: [rule: string, file: string, lines: string][] = [
    ['sdk', 'sdk/src/planted-1.ts', "import '../../core/src/platform/errors.ts';"],
    ['sdk', 'sdk/src/planted-2.ts', "import '@portico/registry';"],
    ['core-services', 'core/src/services/planted-50.ts', "import '../features/users/service.ts';"],
    ['core-services-supervisor', 'core/src/services/supervisor/planted-51.ts', "import '@portico/sdk';"],
    ['registry', 'registry/src/planted-3.ts', "import '../../core/src/platform/errors.ts';"],
    [
        'registry',
        'registry/src/planted-4.ts',
        "import type { contract } from '../../extensions/other/src/contract.ts';\nexport type C = typeof contract;"
    ],
    ['core-platform', 'core/src/platform/planted-5.ts', "import '../features/hosts/service.ts';"],
    ['core-platform', 'core/src/platform/planted-6.ts', "import '../panel.ts';"],
    ['core-platform', 'core/src/platform/database/planted-7.ts', "import '../../features/hosts/service.ts';"],
    ['core-http', 'core/src/server/http/planted-8.ts', "import '../../features/users/service.ts';"],
    ['core-gateway', 'core/src/server/gateway/planted-9.ts', "import '../../features/users/service.ts';"],
    [
        'core-engine',
        'core/src/engine/planted-10.ts',
        "import type { hosts } from '../features/hosts/service.ts';\nexport type H = typeof hosts;"
    ],
    ['core-engine-routes', 'core/src/engine/routes.ts', "import '../features/hosts/service.ts';"],
    [
        'core-platform',
        'core/src/platform/outbound/planted-28.ts',
        "import '../../features/users/service.ts';"
    ],
    ['core-feature', 'core/src/features/hosts/planted-11.ts', "import '../users/service.ts';"],
    [
        'core-feature',
        'core/src/features/hosts/planted-12.ts',
        "import type { users } from '../users/service.ts';\nexport type U = typeof users;"
    ],
    [
        'core-feature',
        'core/src/features/users/planted-13.ts',
        "import '../../../../extensions/other/src/service.ts';"
    ],
    [
        'core-plugin-manager',
        'core/src/plugins/manager/planted-14.ts',
        "import '../../features/users/service.ts';"
    ],
    ['core-plugin-runtime', 'core/src/plugins/runtime/planted-29.ts', "import '../manager/planted-14.ts';"],
    ['sdk', 'sdk/src/planted-32.ts', "import '../testing/src/index.ts';"],
    ['sdk', 'sdk/src/planted-70.ts', "import '../agents/src/index.ts';"],
    ['sdk-agents', 'sdk/agents/src/planted-71.ts', "import '../../../core/src/platform/errors.ts';"],
    ['sdk-page-kit', 'sdk/page-kit/src/planted-72.ts', "import '../../src/planted-1.ts';"],
    ['sdk-testing', 'sdk/testing/src/planted-33.ts', "import '../../../core/src/panel.ts';"],
    ['core-plugin-runtime-entry', 'core/src/plugin-runtime.ts', "import './features/hosts/service.ts';"],
    ['core-panel', 'core/src/panel.ts', "import '../../extensions/other/src/service.ts';"],
    ['core-bundled', 'core/src/bundled.ts', "import './panel.ts';"],
    ['core-main', 'core/src/main.ts', "import './features/hosts/service.ts';"],
    ['core-cli', 'core/src/cli/planted-15.ts', "import '../../../extensions/other/src/service.ts';"],
    ['extension', 'extensions/hello/src/planted-16.ts', "import '../../../core/src/platform/errors.ts';"],
    ['extension-browser', 'extensions/webui/web/src/planted-29.ts', "import '../../../hello/src/index.ts';"],
    ['extension', 'extensions/hello/src/planted-17.ts', "import '@portico/registry';"],
    [
        'extension',
        'extensions/hello/src/planted-18.ts',
        "import type { service } from '../../other/src/service.ts';\nexport type S = typeof service;"
    ],
    [
        'extension-contract',
        'extensions/hello/src/planted-19.ts',
        "import { contract } from '../../other/src/contract.ts';\nexport const c = contract;"
    ],
    [
        'hapi-at-the-edge',
        'core/src/features/hosts/planted-20.ts',
        "import { server } from '@hapi/hapi';\nexport const s = server;"
    ],
    [
        'hapi-at-the-edge',
        'core/src/engine/planted-21.ts',
        "import type { server } from '@hapi/hapi';\nexport type S = typeof server;"
    ],
    [
        'hapi-at-the-edge',
        'core/src/panel.ts',
        "import { server } from '@hapi/hapi';\nexport const s = server;"
    ],
    [
        'engine-as-type',
        'core/src/features/hosts/planted-22.ts',
        "import { render } from '../../engine/render/render.ts';\nexport const r = render;"
    ],
    ['entry-file', 'core/src/panel.ts', "import './main.ts';"],
    ['no-cycle', 'core/src/features/users/service.ts', "import './partner.ts';"],
    ['no-cycle', 'core/src/features/users/partner.ts', "import './service.ts';"],
    ['no-row-from', 'core/src/elsewhere/planted-23.ts', "import '../platform/errors.ts';"],
    ['no-row-orphan', 'core/src/elsewhere/planted-24.ts', 'export const alone = 1;'],
    ['unresolved', 'core/src/features/users/planted-25.ts', "import './nowhere.ts';"],
    ['tools', 'tools/planted-26.mjs', "import '../core/src/platform/errors.ts';"],
    ['sdk', 'sdk/src/planted-27.ts', "import '../../test/users.ts';"]
];

interface Violation {
    from: string;
    cycle?: { name: string }[];
    rule: { name: string; severity: string };
}

interface Report {
    violations: Violation[];
    ruleSetUsed: { forbidden: { name: string; comment?: string }[] };
}

describe('the import rules', () => {
    let folder: string;
    let clean: Report;
    let planted: Report;

    before(async () => {
        folder = await mkdtemp(join(tmpdir(), 'layers-'));
        await cp(join(root, '.dependency-cruiser.cjs'), join(folder, '.dependency-cruiser.cjs'));
        for (const name of ['sdk', 'registry']) {
            await mkdir(join(folder, 'node_modules/@portico'), { recursive: true });
            await symlink(join(folder, name), join(folder, 'node_modules/@portico', name));
        }
        for (const [file, source] of Object.entries(cleanTree)) {
            await plant(file, source);
        }
        clean = await cruise(folder);
        for (const [, file, lines] of plants) {
            await plant(file, lines);
        }
        planted = await cruise(folder);
    });

    after(() => rm(folder, { recursive: true, force: true }));

    it('find nothing in a tree that keeps them', () => {
        expect(clean.violations).to.equal([]);
    });

    for (const [rule, file, lines] of plants) {
        it(`${rule}: names ${file} for ${lines.split('\n')[0]}`, () => {
            const found = planted.violations.filter(
                (violation) => violation.rule.name === rule && involves(violation, file)
            );
            expect(found).to.not.be.empty();
            expect(found.every((violation) => violation.rule.severity === 'error')).to.be.true();
        });
    }

    it('say what to do instead, every one of them', () => {
        const { forbidden } = planted.ruleSetUsed;
        expect(forbidden.filter(({ comment }) => comment === undefined || comment.length < 20)).to.equal([]);
        const planned = new Set(plants.map(([rule]) => rule));
        expect(forbidden.map(({ name }) => name).filter((name) => !planned.has(name))).to.equal([
            'core-bin',
            'test',
            'no-row-to'
        ]);
    });

    it('name nothing but what was planted', () => {
        const files = new Set(plants.map(([, file]) => file));
        expect(
            planted.violations.filter((violation) => ![...files].some((file) => involves(violation, file)))
        ).to.equal([]);
    });

    async function plant(file: string, source: string): Promise<void> {
        await mkdir(dirname(join(folder, file)), { recursive: true });
        await appendFile(join(folder, file), `${source}\n`);
    }
});

function involves({ from, cycle }: Violation, file: string): boolean {
    return from === file || cycle?.some((step) => step.name === file) === true;
}

function cruise(folder: string): Promise<Report> {
    const args = [
        join(root, 'node_modules/dependency-cruiser/bin/dependency-cruiser.mjs'),
        '--config',
        '.dependency-cruiser.cjs',
        '--output-type',
        'json',
        'core',
        'sdk',
        'registry',
        'extensions',
        'test',
        'tools'
    ];
    return new Promise((done, fail) => {
        execFile(process.execPath, args, { cwd: folder, maxBuffer: 1e8 }, (error, stdout) => {
            if (stdout === '') {
                fail(error ?? new Error('dependency-cruiser said nothing'));
                return;
            }
            done((JSON.parse(stdout) as { summary: Report }).summary);
        });
    });
}
