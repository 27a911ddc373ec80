/** The package.json of a plugin as it would be published, without running any code. */
import { errorOf, type Finding, warningOf } from '../finding.ts';

const supplied = ['@portico/sdk', '@mikro-orm/core', '@mikro-orm/sqlite'];
const installScripts = ['preinstall', 'install', 'postinstall'];

/** Holds package.json against what every plugin's says. */
export function checkPackage(fields: Readonly<Record<string, unknown>>): readonly Finding[] {
    const names = (field: string): readonly string[] => {
        const value = fields[field] ?? {};
        return Array.isArray(value) ? (value as string[]) : Object.keys(value);
    };
    const findings: Finding[] = [];
    const wrong = (isWrong: boolean, message: string, mend: string, finding = errorOf): void => {
        if (isWrong) {
            findings.push(finding('package', 'package.json', message, mend));
        }
    };
    wrong(
        !names('keywords').includes('portico-plugin'),
        'It lacks the keyword portico-plugin',
        'Add "keywords": ["portico-plugin"]: panels find plugins by it'
    );
    wrong(fields['type'] !== 'module', 'It is not an ES module', 'Add "type": "module"');
    wrong(
        !names('peerDependencies').includes('@portico/sdk'),
        'It does not name the SDK as a peer',
        'Add "peerDependencies": { "@portico/sdk": "^1.0.0" }: the panel supplies it'
    );
    const kinds = ['dependencies', 'optionalDependencies', 'bundleDependencies', 'bundledDependencies'];
    const carried = kinds.flatMap(names);
    for (const name of supplied) {
        wrong(
            carried.includes(name),
            `${name} is among its dependencies`,
            'Move it to "peerDependencies" and "devDependencies": a second copy in one process is refused'
        );
    }
    const scripts = installScripts.filter((name) => names('scripts').includes(name));
    wrong(
        scripts.length > 0,
        `It has a script ${scripts.join(', ')}`,
        'Remove it: a panel never runs install scripts; do that work in onStart'
    );
    wrong(
        fields['files'] === undefined,
        'It does not say which files are published',
        'Add "files": ["dist"], or tests and sources go along',
        warningOf
    );
    wrong(
        fields['description'] === undefined,
        'It has no description',
        'Say in one line what the plugin is for: lists of plugins show it',
        warningOf
    );
    return findings;
}
