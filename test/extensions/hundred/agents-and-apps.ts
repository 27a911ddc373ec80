import * as Lab from '@hapi/lab';

import { hundredTimes } from '../../support/plugins/hundred.ts';

export const lab = Lab.script();

hundredTimes(lab, ['ai', 'mcpserver', 'cronjob', 'container', 'deploy', 'appstore']);
