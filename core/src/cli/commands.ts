/** The list of all commands. None of them loads the database before it needs it. */
import { adminCreate } from './admin/create.ts';
import { adminResetPassword } from './admin/reset-password.ts';
import { apiCommands } from './api/groups.ts';
import { auditVerify } from './audit/verify.ts';
import type { Command } from './command/command.ts';
import { createCompletion } from './completion.ts';
import { dataBackup } from './data/backup.ts';
import { dataCheck } from './data/check.ts';
import { dataRestore } from './data/restore.ts';
import { doctor } from './doctor/doctor.ts';
import { exportCommand } from './export.ts';
import { importCommand } from './import.ts';
import { logs } from './logs/logs.ts';
import { pluginCreate } from './plugin/create.ts';
import { pluginDev } from './plugin/dev.ts';
import { pluginDisable } from './plugin/disable.ts';
import { pluginEnable } from './plugin/enable.ts';
import { pluginInstall } from './plugin/install.ts';
import { pluginList } from './plugin/list.ts';
import { pluginRemove } from './plugin/remove.ts';
import { pluginTest } from './plugin/test.ts';
import { pluginValidate } from './plugin/validate.ts';
import { start } from './start.ts';
import { tokenCreate } from './token/create.ts';
import { totpConfirm } from './totp/confirm.ts';
import { totpEnrol } from './totp/enrol.ts';

/** All commands, in the order in which the help shows them. */
export const commands: readonly Command[] = [
    start,
    adminResetPassword,
    adminCreate,
    tokenCreate,
    totpEnrol,
    totpConfirm,
    auditVerify,
    exportCommand,
    importCommand,
    dataBackup,
    dataCheck,
    dataRestore,
    doctor,
    logs,
    ...apiCommands,
    pluginList,
    pluginInstall,
    pluginEnable,
    pluginDisable,
    pluginRemove,
    pluginCreate,
    pluginDev,
    pluginValidate,
    pluginTest,
    createCompletion(() => commands)
];
