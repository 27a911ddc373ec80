import { fileURLToPath } from 'node:url';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';
import { runConformance } from '@portico/testing';

export const lab = Lab.script();
const { describe, it } = lab;

/** Routes that the generated page does not show, by extension and by the reason. */
const withoutPlace: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
    ai: {
        'the page of the assistant shows these streams': [
            'ask',
            'continue',
            'regenerate',
            'diagnose',
            'generate',
            'review'
        ]
    },
    appstore: {
        'an app and a template are named by two parameters of one list': ['app', 'icon', 'useTemplate']
    },
    backup: { 'the page asks for no query first': ['search', 'diff', 'content'] },
    container: {
        'the page asks for no query first': ['searchImages', 'volumeContent', 'containerArchive'],
        'the page sends no files': ['loadImages', 'replaceVolume']
    },
    cronjob: {
        'the page asks for no query first': ['searchOutput'],
        'the list of triggers lies below a job': ['removeTrigger']
    },
    database: {
        'the page asks for no query first': ['connection', 'exportTable'],
        'the page sends no files': ['importTable', 'uploadDump']
    },
    deploy: {
        'the page of deploy calls these': ['cancel', 'deploymentLog'],
        'their list lies below a project': [
            'deployment',
            'deleteRelease',
            'provenance',
            'artifact',
            'preview',
            'closePreview',
            'approvePreview',
            'revokePreview',
            'updateCron',
            'deleteCron',
            'runCron'
        ]
    },
    monitoring: {
        'the page of monitoring calls this': ['history'],
        'the page asks for no query first': ['logs', 'followLogs'],
        'the last part of the path is a choice': ['unitAction']
    },
    php: { 'the last part of the path is a choice': ['runTool'] }
};

describe('The extensions', { timeout: 120_000 }, () => {
    for (const name of [
        'ai',
        'appstore',
        'backup',
        'container',
        'cronjob',
        'database',
        'deploy',
        'filemanager',
        'firewall',
        'mcpserver',
        'monitoring',
        'php'
    ]) {
        it(`say what each field and each route is for: ${name}`, async () => {
            const folder = fileURLToPath(new URL(`../../extensions/${name}`, import.meta.url));
            const { checked, findings } = await runConformance(folder, { cycles: 1, requests: [] });
            expect(checked).to.include(['routes', 'labels', 'places', 'readme']);
            const known = Object.values(withoutPlace[name] ?? {}).flat();
            const unplaced = findings.filter(({ rule }) => rule === 'places');
            expect(unplaced.map(({ where }) => /\((.+)\)$/.exec(where)?.[1]).sort()).to.equal(known.sort());
            // No route is asked here, and the suite warns that it could not compare threads.
            expect(findings.filter(({ rule }) => rule !== 'threads' && rule !== 'places')).to.equal([]);
        });
    }
});
