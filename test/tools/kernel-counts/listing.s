program.so:	file format elf64-x86-64

Disassembly of section .text:

0000000000001000 <llmc_task.layer.0>:
    1000:      	xorl	%eax, %eax
    1002:      	vmovups	(%rsi), %zmm0
    1008:      	vpdpbusd	(%rdx){1to16}, %zmm0, %zmm1
    100e:      	vpdpbusd	4(%rdx){1to16}, %zmm0, %zmm2
    1014:      	vmovups	%zmm2, 64(%rsp)
    101a:      	addq	$64, %rsi
    101e:      	incq	%rax
    1021:      	cmpq	%rax, %rcx
    1024:      	jne	0x1002 <llmc_task.layer.0+0x2>
    1026:      	vpdpbusd	(%rdx), %ymm0, %ymm1
    102c:      	jne	0x1026 <llmc_task.layer.0+0x26>
    102e:      	vfmadd231ps	%zmm0, %zmm1, %zmm2
    1034:      	jl	0x1000 <llmc_task.layer.0>
    1036:      	retq

0000000000001040 <llmc_step>:
    1040:      	vfmadd231ps	%zmm0, %zmm1, %zmm2
    1046:      	jmp	0x1040 <llmc_step>

0000000000001050 <llmc_task.step.0>:
    1050:      	vfmadd231ps	%ymm0, %ymm1, %ymm2
    1056:      	vaddps	%ymm0, %ymm1, %ymm2
    105c:      	jmp	0x1050 <llmc_task.step.0>

0000000000001060 <llmc_task.step.1>:
    1060:      	retq
