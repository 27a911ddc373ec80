import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { exposedPort } from '../../../../extensions/deploy/src/containers/builder.ts';
import { linesOf, readCompose } from '../../../../extensions/deploy/src/containers/compose.ts';
import { DeploymentFailed } from '../../../../extensions/deploy/src/errors.ts';

export const lab = Lab.script();
const { describe, it } = lab;

const nameOf = (service: string): string => `built/${service}:1`;
const refusalOf = (text: string): string => {
    try {
        readCompose(text, nameOf);
        return '';
    } catch (error) {
        return error instanceof DeploymentFailed ? `${error.reason} ${error.message}` : String(error);
    }
};

describe('readCompose', () => {
    it('takes the place of what is built, and leaves every other file as it is', () => {
        const plain = 'services: { db: { image: postgres } } # as it is\n';
        expect(readCompose(plain, nameOf)).to.equal({ builds: [], compose: plain });
        const { builds, compose } = readCompose(
            'x-a: &a { restart: always }\nservices:\n  web: { <<: *a, build: . }\n  job: { build: { context: ./job/, dockerfile: D, target: t, args: [A=1=2, B] } }\n',
            nameOf
        );
        expect(builds).to.equal([
            { service: 'web', context: '', dockerfile: 'Dockerfile', target: null, args: {} },
            { service: 'job', context: 'job', dockerfile: 'D', target: 't', args: { A: '1=2', B: '' } }
        ]);
        expect(compose).to.contain('image: built/web:1').and.to.contain('restart: always');
        expect(compose).to.not.contain('build:');
    });

    it('refuses builds that lead out, options that are not carried out, and what is no compose file', () => {
        const build = (given: string): string => refusalOf(`services: { web: { build: ${given} } }`);
        for (const given of [
            '..',
            '/etc',
            '{ context: a/../.. }',
            '{ dockerfile: ../x }',
            'https://git.example/a',
            '$X'
        ]) {
            expect(build(given), given).to.match(/^BUILD_FAILED .*leads out/);
        }
        expect(build('{ context: ., privileged: true }')).to.contain('build.privileged');
        for (const text of ['', '[]', 'services: 3', 'a: [', 'services: { web: 1 }']) {
            expect(refusalOf(text), text).to.match(/^BUILD_FAILED /);
        }
    });
});

describe('linesOf', () => {
    it('quotes what a line could not hold', () => {
        expect(linesOf({ A: 'b', B: 'a\n"$x"\\' })).to.equal('A="b"\nB="a\\n\\"\\$x\\"\\\\"');
    });
});

describe('exposedPort', () => {
    it('takes the first port of the last stage', () => {
        expect(exposedPort('FROM a\nEXPOSE 1000\nFROM b\nexpose 3000/tcp 4000\nEXPOSE 5000\n')).to.equal(
            3000
        );
        expect(exposedPort('FROM a\nEXPOSE 1000\nFROM b\n')).to.equal(8080);
    });
});
