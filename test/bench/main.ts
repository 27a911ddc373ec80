/**
 * Measures the panel and compares it with the floors of docs/measurements.md. Figures are ratios within one run, so that the speed of the machine does not count.
 * Run: `npm run bench -- [name …]`; without names, it runs all of them. Ends with 1 when a figure misses its floor.
 */
import { createReport, type Report } from './report.ts';

const folders = {
    http: 'panel',
    hooks: 'plugins',
    audit: 'panel',
    database: 'panel',
    render: 'engine',
    apply: 'engine',
    traffic: 'engine',
    memory: 'panel',
    changes: 'engine',
    events: 'panel',
    'access-log': 'panel',
    process: 'panel',
    plugins: 'plugins',
    services: 'plugins',
    php: 'extensions',
    firewall: 'extensions',
    backup: 'extensions',
    cronjob: 'extensions',
    monitoring: 'extensions',
    databases: 'extensions',
    mcpserver: 'extensions',
    container: 'extensions',
    appstore: 'extensions',
    deploy: 'extensions',
    filemanager: 'extensions',
    ai: 'extensions',
    acme: 'engine'
} as const;
type Name = keyof typeof folders;

const names = Object.keys(folders) as Name[];

const asked = process.argv.slice(2);
const unknown = asked.filter((name) => !Object.hasOwn(folders, name));
if (unknown.length > 0) {
    console.error(`There is no bench ${unknown.join(', ')}; there are ${names.join(', ')}`);
    process.exit(2);
}
const report = createReport();
for (const name of asked.length === 0 ? names : (asked as Name[])) {
    const began = performance.now();
    console.log(`\n${name}`);
    const { bench } = (await import(`./${folders[name]}/${name}.ts`)) as {
        readonly bench: (report: Report) => Promise<void>;
    };
    await bench(report);
    console.log(`      ${Math.round((performance.now() - began) / 1000)} s`);
}
report.close();
process.exit(report.failed === 0 ? 0 : 1);
