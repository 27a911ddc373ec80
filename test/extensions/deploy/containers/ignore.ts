import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { isIgnored, readRules } from '../../../../extensions/deploy/src/containers/ignore.ts';

export const lab = Lab.script();
const { describe, it } = lab;

const left = (text: string, ...paths: readonly string[]): readonly string[] =>
    paths.filter((path) => !isIgnored(readRules(text), path));

describe('.dockerignore', () => {
    it('leaves out what a line names, with all that lies below it', () => {
        expect(
            left('# comment\n\n*.md\n/node_modules/\n', 'a.md', 'b/a.md', 'node_modules/x/y', 'c')
        ).to.equal(['b/a.md', 'c']);
        expect(left('**/*.log\n./dist\n', 'a.log', 'a/b.log', 'dist/x', 'distant')).to.equal(['distant']);
    });

    it('takes a character behind a backslash for itself, and walks `..`', () => {
        expect(left('\\#notes\na\\*b\nc/../d\n', '#notes', 'a*b', 'axb', 'd/e', 'c/d')).to.equal([
            'axb',
            'c/d'
        ]);
    });

    it('lets the last line that matches decide', () => {
        expect(
            left('*\n!src\n!.env.example\nsrc/secret\n', '.env', '.env.example', 'src/a', 'src/secret/b')
        ).to.equal(['.env.example', 'src/a']);
    });
});
